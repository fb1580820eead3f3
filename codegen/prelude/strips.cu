// Reductions of matrix columns: a block or warp takes a strip of columns, several lines at a time, in vectors.

//@ part reduce_strip : padded_partials lanes
// Reduces a strip of columns over the kTeam threads of a block. kLanes threads share a line: slots[e] is of column
// threadIdx.x % kLanes * kWidth + e. Thread i gets the result of column i, if there is one; places[e] becomes that of
// the column of slots[e], for e < kPlaces (0 or kWidth).
//
// Of two lanes with the same columns, each goes on with one half of them, until a lane has one column. The results of
// warps are then combined in shared memory.
template <int kTeam, int kLanes, int kPlaces, int kWidth, class Combine, class T>
__device__ __forceinline__ T reduce_strip(const T (&slots)[kWidth], T* places, Combine combine) {
  using Column = PaddedPartials<T, 1>;
  constexpr int kColumns = kLanes * kWidth, kLine = kColumns + kColumns / Column::kLine, kWarps = kTeam / 32;
  __shared__ PaddedPartials<T, kWarps * kLine> all;
  const unsigned thread = threadIdx.x, first = thread % kLanes * kWidth;
  T values[kWidth];
#pragma unroll
  for (int e = 0; e < kWidth; ++e) values[e] = slots[e];
  unsigned column = first;
  int count = kWidth;
  bool leaves = true;
#pragma unroll
  for (int mask = 16; mask >= kLanes; mask /= 2) {
    const bool upper = thread & mask;
    if (count == 1) {
      values[0] = combine(values[0], from_lane_xor(values[0], mask));
      leaves = leaves && !upper;
      continue;
    }
    count /= 2;
#pragma unroll
    for (int e = 0; e < kWidth / 2; ++e) {
      if (e >= count) continue;
      const T mine = upper ? values[count + e] : values[e], other = upper ? values[e] : values[count + e];
      values[e] = combine(mine, from_lane_xor(other, mask));
    }
    column += upper ? count : 0;
  }
  __syncthreads();
  if (leaves) {
    const unsigned place = thread / 32 * kLine + column + column / Column::kLine;
#pragma unroll
    for (int e = 0; e < kWidth; ++e)
      if (e < count) all.put_dense(place + e, values[e]);
  }
  __syncthreads();
  T value = values[0];
  const unsigned mine = thread + thread / Column::kLine;
  if (thread < kColumns) {
    value = all.get_dense(mine);
#pragma unroll
    for (int warp = 1; warp < kWarps; ++warp) value = combine(value, all.get_dense(warp * kLine + mine));
  }
  if constexpr (kPlaces > 0) {
    if (thread < kColumns) all.put_dense(mine, value);  // no other thread has read this element
    __syncthreads();
#pragma unroll
    for (int e = 0; e < kPlaces; ++e) places[e] = all.get_dense(first + first / Column::kLine + e);
  }
  return value;
}

//@ part join_lines : lanes
// Reduces columns over a warp. kLanes lanes share a line, with kWidth columns each. Every lane gets the results of its
// columns.
template <int kLanes, int kWidth, class Combine, class T>
__device__ __forceinline__ void join_lines(T (&slots)[kWidth], Combine combine) {
#pragma unroll
  for (int mask = 16; mask >= kLanes; mask /= 2) {
#pragma unroll
    for (int e = 0; e < kWidth; ++e) slots[e] = combine(slots[e], from_lane_xor(slots[e], mask));
  }
}

//@ part unaligned_strip : store_lanes_shared padded_partials
// Reduces kRows columns over unaligned lines. kParts threads have partial results, kLanes per line: slots[e] is of
// column first + e. Vectors are aligned in memory, so the first and last of a line may reach beyond the columns. Thread
// i < kRows gets the result of column i; places[e] becomes that of column first + e, for e < kPlaces.
template <int kTeam, int kParts, int kLanes, int kRows, int kPlaces, int kWidth, class Combine, class T>
__device__ __forceinline__ T reduce_unaligned_strip(const T (&slots)[kWidth], T* places, int first, Combine combine) {
  constexpr int kLines = kParts / kLanes;
  constexpr bool kDense = SharedTypeOf<T>::kIsWord && kWidth % 4 == 0;
  __shared__ alignas(16) PaddedPartials<typename SharedTypeOf<T>::Type, kParts * kWidth> all;
  __shared__ int begins[kLines];  // index of each line's column 0
  const int thread = threadIdx.x;
  __syncthreads();
  if (thread < kParts) {
    if constexpr (kDense) {
      store_lanes_shared(all.value, slots, thread);
    } else {
#pragma unroll
      for (int e = 0; e < kWidth; ++e) all.put(thread * kWidth + e, slots[e]);
    }
    if (thread % kLanes == 0) begins[thread / kLanes] = thread * kWidth - first;
  }
  __syncthreads();
  const auto of_line = [&](int line) {
    const int place = begins[line] + thread;
    if constexpr (kDense) return (T)all.get_dense(place);
    return (T)all.get(place);
  };
  T value = slots[0];
  if (thread < kRows) {
    value = of_line(0);
#pragma unroll 8
    for (int line = 1; line < kLines; ++line) value = combine(value, of_line(line));
  }
  if constexpr (kPlaces > 0) {  // overwrites each line's partial results with its columns' results
    __syncthreads();
    if (thread < kRows) {
#pragma unroll 8
      for (int line = 0; line < kLines; ++line) {
        if constexpr (kDense)
          all.put_dense(begins[line] + thread, value);
        else
          all.put(begins[line] + thread, value);
      }
    }
    __syncthreads();
    if constexpr (kDense) {
      if (thread < kParts) load_lanes_shared<kWidth>(places, all.value, thread);
    } else {
#pragma unroll
      for (int e = 0; e < kPlaces; ++e) places[e] = (T)all.get(thread < kParts ? thread * kWidth + e : 0);
    }
  }
  return value;
}
