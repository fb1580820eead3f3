// Sorting by the threads of a block.

//@ part sort_line
// Stable merge sort of a line's positions by the threads of a block: `order` gets the result, `other` is scratch
// memory. `before(a, b)` says whether element a comes before element b.
template <int kThreads, class Position, class Before>
__device__ __forceinline__ void sort_line(Position* order, Position* other, Position length, Before before) {
  for (Position k = threadIdx.x; k < length; k += kThreads) order[k] = k;
  __syncthreads();
  bool swapped = false;
  for (Position run = 1; run < length; run *= 2) {
    const Position* from = swapped ? other : order;
    Position* to = swapped ? order : other;
    for (Position k = threadIdx.x; k < length; k += kThreads) {
      const Position left = k / (2 * run) * (2 * run);
      const Position middle = left + run < length ? left + run : length;
      const Position end = middle + run < length ? middle + run : length;
      const bool on_left = k < middle;
      const Position mine = from[k];
      // Binary search for how many elements of the other run come before mine. Of equal ones, the left run's do.
      Position low = on_left ? middle : left, high = on_left ? end : middle;
      const Position start = low;
      while (low < high) {
        const Position half = low + (high - low) / 2;
        if (on_left ? before(from[half], mine) : !before(mine, from[half]))
          low = half + 1;
        else
          high = half;
      }
      to[left + (k - (on_left ? left : middle)) + (low - start)] = mine;
    }
    swapped = !swapped;
    __syncthreads();
  }
  if (swapped)
    for (Position k = threadIdx.x; k < length; k += kThreads) order[k] = other[k];
  __syncthreads();
}

//@ part comes_before
// a < b, where NaN is greater than every number.
template <class T>
__device__ __forceinline__ bool is_less(T a, T b) { return b != b ? a == a : a < b; }
