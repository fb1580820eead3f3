// 16 bytes of results that are a run of a tensor, wherever they begin in shared memory, or of several.

//@ part runs : stretches dynamic_shared shared_address
// What a table says of a piece of a row: the address in shared memory where it would lie, had the block's first element
// a place there as well; from kConstantRun on, the address of 16 bytes that are all constant; up to kFarRun, the number
// of a tensor that is read where it lies.
constexpr int kConstantRun = 1 << 24, kFarRun = -(1 << 30);
struct PlaceOfRun {
  int row, column;  // rows are counted from the first of the block
};
// 16 of 32 bytes.
template <int kBits>
__device__ __forceinline__ Words<4> run_of(const Words<4>& low, const Words<4>& behind, int from) {
  const bool two = (from & 8) != 0, one = (from & 4) != 0;
  const unsigned a = two ? low.w[2] : low.w[0], b = two ? low.w[3] : low.w[1], c = two ? behind.w[0] : low.w[2];
  const unsigned d = two ? behind.w[1] : low.w[3], e = two ? behind.w[2] : behind.w[0];
  const unsigned u = one ? b : a, v = one ? c : b, w = one ? d : c, x = one ? e : d;
  if constexpr (kBits == 32) return {{u, v, w, x}};
  const unsigned f = two ? behind.w[3] : behind.w[1], y = one ? f : e, shift = 8 * from;
  return {{__funnelshift_r(u, v, shift), __funnelshift_r(v, w, shift), __funnelshift_r(w, x, shift),
           __funnelshift_r(x, y, shift)}};
}
// Of shared memory, at its address.
__device__ __forceinline__ Words<4> shared_vector(int from) {
  Words<4> v;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.w[0]), "=r"(v.w[1]), "=r"(v.w[2]), "=r"(v.w[3])
               : "r"(from)
               : "memory");
  return v;
}
__device__ __forceinline__ int shared_word(int from) {
  int word;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(from) : "memory");
  return word;
}
template <int kBits>
__device__ __forceinline__ Words<4> run_at(int from) {
  return run_of<kBits>(shared_vector(from & ~15), shared_vector((from + 15) & ~15), from);
}
// Of a tensor; what lies outside of it is 0.
template <int kBits, class Index>
__device__ __forceinline__ Words<4> run_of_tensor(const void* tensor, Index count, int from) {
  constexpr int kShift = kBits == 8 ? 4 : kBits == 16 ? 3 : 2;
  const Words<4> low = vector_of_tensor<kBits, Inside::kUnknown, false>(tensor, count, from >> kShift);
  const Words<4> behind = vector_of_tensor<kBits, Inside::kUnknown, false>(tensor, count, (from >> kShift) + 1);
  return run_of<kBits>(low, behind, from * (kBits / 8));
}
template <int kBits>
__device__ __forceinline__ Words<4> backwards(const Words<4>& words) {
  constexpr unsigned kOrder = kBits == 8 ? 0x0123u : kBits == 16 ? 0x1032u : 0x3210u;
  return {{__byte_perm(words.w[3], 0, kOrder), __byte_perm(words.w[2], 0, kOrder), __byte_perm(words.w[1], 0, kOrder),
           __byte_perm(words.w[0], 0, kOrder)}};
}
// The first element, everywhere.
template <int kBits>
__device__ __forceinline__ Words<4> repeated(const Words<4>& words) {
  constexpr unsigned kOrder = kBits == 8 ? 0x0000u : kBits == 16 ? 0x1010u : 0x3210u;
  const unsigned all = __byte_perm(words.w[0], 0, kOrder);
  return {{all, all, all, all}};
}
// All from a byte on are those of another run.
__device__ __forceinline__ void go_on_with(Words<4>& words, const Words<4>& others, int byte) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int bits = 8 * byte - 32 * i;
    const unsigned behind = __funnelshift_lc(0u, ~0u, i == 0 ? bits : max(bits, 0));
    asm("lop3.b32 %0, %1, %2, %0, 0xca;" : "+r"(words.w[i]) : "r"(behind), "r"(others.w[i]));
  }
}
// What holds the elements from `low` to before `high`; nothing where that is more than kMost vectors.
template <int kBits, int kMost>
__device__ __forceinline__ Stretch stretch_of(int low, int high) {
  constexpr int kEach = 128 / kBits;
  const int first = (int)((unsigned)low / kEach), count = (int)((unsigned)(high - 1) / kEach) - first + 1;
  return {first, low >= high || count > kMost ? 0 : count};
}
// A thread's vectors, kThreads apart; `left`: bytes from the first one on to the tensor's end.
template <int kThreads, int kMost, bool kWhole, int kFrom = 0>
__device__ __forceinline__ void copy_vectors(unsigned to, unsigned long long from, int count, long long left) {
  if constexpr (kFrom < kMost) {
    if (kFrom >= count) return;
    if constexpr (kWhole)
      asm volatile("cp.async.cg.shared.global [%0+%1], [%2+%1], 16;" : : "r"(to), "n"(16 * kFrom), "l"(from));
    else
      asm volatile("cp.async.cg.shared.global [%0+%1], [%2+%1], 16, %3;"
                   :
                   : "r"(to), "n"(16 * kFrom), "l"(from), "r"((int)min(left - 16 * kFrom, 16ll)));
    copy_vectors<kThreads, kMost, kWhole, kFrom + kThreads>(to, from, count, left);
  }
}
// By all threads of the block, with 16 bytes of zeros before them and behind them, while they go on.
template <int kBits, int kThreads, int kMost, bool kWhole, class Index>
__device__ __forceinline__ void copy_between_zeros(unsigned char* to, const void* tensor, Index count,
                                                   Stretch stretch) {
  const int v = threadIdx.x;
  if (v < 2) store_words(to + (v == 0 ? 0 : 16 + 16 * stretch.vectors), Words<4>{});
  const long long first = 16 * ((long long)stretch.first + v);
  copy_vectors<kThreads, kMost, kWhole>(shared_address(to) + 16 + 16 * v,
                                        __cvta_generic_to_global((const unsigned char*)tensor + first),
                                        stretch.vectors - v, (long long)count * (kBits / 8) - first);
}
__device__ __forceinline__ void wait_for_stretches() {
  asm volatile("cp.async.wait_all;" : : : "memory");
  __syncthreads();
}
// Puts down where the runs are that the block has yet to put together; `from`: of a thread's, negative where it is one.
// That becomes the address of the 16 bytes in shared memory, of those from `made` on, as a negative number. Gives how
// many there are; `counter` has been 0.
template <int kTurns>
__device__ __forceinline__ int list_of_block(PlaceOfRun* list, int* counter, int made,
                                             const PlaceOfRun (&places)[kTurns], int (&from)[kTurns]) {
  unsigned wanted[kTurns];
  int count = 0;
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn)
    wanted[turn] = __ballot_sync(~0u, from[turn] < 0), count += __popc(wanted[turn]);
  if (count > 0) {
    const int lane = threadIdx.x & 31;
    int first = 0;
    if (lane == 0) first = atomicAdd(counter, count);
    first = __shfl_sync(~0u, first, 0);
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn) {
      if (from[turn] < 0) {
        const int place = first + __popc(wanted[turn] & ((1u << lane) - 1));
        list[place] = places[turn];
        from[turn] = -(made + 16 * place);
      }
      first += __popc(wanted[turn]);
    }
  }
  __syncthreads();
  return *counter;
}
