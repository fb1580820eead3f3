// Rows of a tensor that a block's threads pick elements of.

//@ part picked_rows : windows
// kRows rows of kLength elements, from the positions `firsts` on: the vectors of 16 bytes that hold each, row by row. By
// all threads of the block.
template <int kBits, int kThreads, int kRows, int kVectors, int kLength, Inside kInside, bool kStream, class Index>
__device__ __forceinline__ void copy_rows(unsigned char* tile, const void* tensor, Index count, const int* firsts) {
  constexpr int kEach = 128 / kBits, kAll = kRows * kVectors, kTurns = (kAll + kThreads - 1) / kThreads;
  constexpr int kAtOnce = kTurns < 4 ? kTurns : 4;  // on their way
  for (int from = threadIdx.x; from < kAll; from += kAtOnce * kThreads) {
    Words<4> read[kAtOnce];
#pragma unroll
    for (int turn = 0; turn < kAtOnce; ++turn) {
      const unsigned v = from + turn * kThreads;
      read[turn] = {};
      if (v >= kAll) continue;
      const int first = firsts[v / kVectors], number = first / kEach + (int)(v % kVectors);
      if (number * kEach < first + kLength) read[turn] = vector_of_tensor<kBits, kInside, kStream>(tensor, count, number);
    }
#pragma unroll
    for (int turn = 0; turn < kAtOnce; ++turn) {
      const int v = from + turn * kThreads;
      const Words<4>& w = read[turn];
      if (v < kAll) *(uint4*)(tile + 16 * v) = make_uint4(w.w[0], w.w[1], w.w[2], w.w[3]);
    }
  }
}
