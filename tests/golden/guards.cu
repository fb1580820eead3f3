// Made by fusec from "guards" for sm_80. Compiles with NVRTC (no include path) and with nvcc -arch=sm_80.
//
//   guards_0_add
//       reads x, bias 640 B; writes shifted 512 B
//       or guards_1_add_guarded, where n % 8 == 0 && 1.0 * batch * n <= 2147418112
//   guards_2_softmax
//       reads long 76 kB; writes rows 76 kB
//       or guards_3_softmax_guarded, where n <= 327
//   guards_4_matmul
//       reads left, right 2304 B; writes product 1024 B
//       or guards_5_matmul_guarded, where k % 8 == 0
//
// Sizes are at batch = 4, n = 64, k = 24.

// ---- prelude: only what this file uses ------------------------------------------------------------
namespace {

#if defined(__NVCC__) || defined(__CUDACC_RTC__)
#pragma nv_diag_suppress 177
#endif

// The value of lane (this lane ^ mask).
template <class T>
__device__ __forceinline__ T from_lane_xor(T value, int mask) { return __shfl_xor_sync(0xffffffffu, value, mask); }
__device__ __forceinline__ bool from_lane_xor(bool value, int mask) {
  return __shfl_xor_sync(0xffffffffu, (int)value, mask) != 0;
}
// kCount partial results in shared memory; neighbouring results are in neighbouring banks.
template <class T, int kCount>
struct Partials {
  T value[kCount];
  __device__ __forceinline__ void put(int i, T from) { value[i] = from; }
  __device__ __forceinline__ T get(int i) const { return value[i]; }
};

// Reduces over each kLanes neighbouring lanes, a power of two, in a fixed order; all of them get the result.
template <int kLanes = 32, class Combine, class T>
__device__ __forceinline__ T warp_reduce(T value, Combine combine) {
#pragma unroll
  for (int mask = kLanes / 2; mask > 0; mask >>= 1) value = combine(value, from_lane_xor(value, mask));
  return value;
}

// Reduces over the block; every thread gets the result. The number of warps is a power of two. Each call in a kernel
// has its own kCall and so its own shared memory: no barrier is needed between calls.
template <int kThreads, int kCall, class Combine, class T>
__device__ __forceinline__ T block_reduce(T value, Combine combine) {
  __shared__ Partials<T, kThreads / 32> partial;
  value = warp_reduce(value, combine);
  if (threadIdx.x % 32 == 0) partial.put(threadIdx.x / 32, value);
  __syncthreads();
  value = partial.get(threadIdx.x % (kThreads / 32));
#pragma unroll
  for (int mask = kThreads / 64; mask > 0; mask >>= 1) value = combine(value, from_lane_xor(value, mask));
  return value;
}

// Maximum and minimum as in PyTorch: NaN if either is NaN; +0 is greater than -0.
template <class T>
__device__ __forceinline__ T nan_max(T a, T b) { return a > b ? a : b; }
template <class T>
__device__ __forceinline__ T nan_min(T a, T b) { return a < b ? a : b; }
__device__ __forceinline__ double nan_max(double a, double b) { return a != a ? a : b != b ? b : fmax(a, b); }
__device__ __forceinline__ double nan_min(double a, double b) { return a != a ? a : b != b ? b : fmin(a, b); }
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
__device__ __forceinline__ float nan_max(float a, float b) {
  float greatest;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(greatest) : "f"(a), "f"(b));
  return greatest;
}
__device__ __forceinline__ float nan_min(float a, float b) {
  float least;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(least) : "f"(a), "f"(b));
  return least;
}
#else
__device__ __forceinline__ float nan_max(float a, float b) { return a != a ? a : b != b ? b : fmaxf(a, b); }
__device__ __forceinline__ float nan_min(float a, float b) { return a != a ? a : b != b ? b : fminf(a, b); }
#endif

// Function objects that combine two partial results of a reduction.
struct Sum {
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const { return a + b; }
};
struct Product {
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const { return a * b; }
};
struct Maximum {  // NaN if either is
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const { return nan_max(a, b); }
};
struct Minimum {
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const { return nan_min(a, b); }
};
struct Any {
  __device__ __forceinline__ bool operator()(bool a, bool b) const { return a || b; }
};
struct All {
  __device__ __forceinline__ bool operator()(bool a, bool b) const { return a && b; }
};

// Copies 16 bytes from global to shared memory (cp.async); zeros if not `there`. commit_copies closes a group of
// copies; wait_for_groups waits for all but the newest kNewest groups.
__device__ __forceinline__ void copy_16_bytes(unsigned to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(to), "l"(__cvta_generic_to_global(from)));
}
__device__ __forceinline__ void copy_16_bytes(unsigned to, const void* from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(to), "l"(__cvta_generic_to_global(from)), "r"(there ? 16 : 0));
}
// Copies 16 bytes of each of kCount lines (cp.async). Destinations are kTo bytes apart; sources are from[i], or kFrom
// bytes apart. `there`: valid bytes of each 16; zeros replace the rest.
template <int kTo, int kAt = 0, class Element, int kCount>
__device__ __forceinline__ void copy_lines(unsigned to, const Element* const (&from)[kCount]) {
  asm volatile("cp.async.cg.shared.global [%0+%1], [%2], 16;"
               :
               : "r"(to), "n"(kAt * kTo), "l"(__cvta_generic_to_global(from[kAt])));
  if constexpr (kAt + 1 < kCount) copy_lines<kTo, kAt + 1>(to, from);
}
template <int kTo, int kAt = 0, class Element, int kCount>
__device__ __forceinline__ void copy_lines(unsigned to, const Element* const (&from)[kCount],
                                           const int (&there)[kCount]) {
  asm volatile("cp.async.cg.shared.global [%0+%1], [%2], 16, %3;"
               :
               : "r"(to), "n"(kAt * kTo), "l"(__cvta_generic_to_global(from[kAt])), "r"(there[kAt]));
  if constexpr (kAt + 1 < kCount) copy_lines<kTo, kAt + 1>(to, from, there);
}
template <int kTo, int kFrom, int kCount, int kAt = 0>
__device__ __forceinline__ void copy_lines(unsigned to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0+%1], [%2+%3], 16;"
               :
               : "r"(to), "n"(kAt * kTo), "l"(__cvta_generic_to_global(from)), "n"(kAt * kFrom));
  if constexpr (kAt + 1 < kCount) copy_lines<kTo, kFrom, kCount, kAt + 1>(to, from);
}
template <int kTo, int kFrom, int kAt = 0, int kCount>
__device__ __forceinline__ void copy_lines(unsigned to, const void* from, const int (&there)[kCount]) {
  asm volatile("cp.async.cg.shared.global [%0+%1], [%2+%3], 16, %4;"
               :
               : "r"(to), "n"(kAt * kTo), "l"(__cvta_generic_to_global(from)), "n"(kAt * kFrom), "r"(there[kAt]));
  if constexpr (kAt + 1 < kCount) copy_lines<kTo, kFrom, kAt + 1>(to, from, there);
}
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;"); }
template <int kNewest>
__device__ __forceinline__ void wait_for_groups() {
  asm volatile("cp.async.wait_group %0;" : : "n"(kNewest) : "memory");
}

// Dynamic shared memory, with its size set at launch.
extern __shared__ __align__(16) unsigned char dynamic_shared[];

// 2^x; results below 2^-126 become 0.
__device__ __forceinline__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

using fp16 = unsigned short;  // storage only; arithmetic is float
__device__ __forceinline__ float from_fp16(unsigned bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"((unsigned short)bits));
  return x;
}
__device__ __forceinline__ fp16 to_fp16(float x) {
  fp16 bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}

// kCount words of 32 bits in registers. Loads and stores use the widest access, 4, 8 or 16 bytes, that divides them;
// the address must be a multiple of that.
template <int kCount>
struct Words {
  unsigned w[kCount];
};
template <int kCount>
__device__ __forceinline__ Words<kCount> load_words(const void* from) {
  Words<kCount> words;
  if constexpr (kCount % 4 == 0) {
#pragma unroll
    for (int i = 0; i < kCount; i += 4) {
      const uint4 four = *(const uint4*)((const unsigned*)from + i);
      words.w[i] = four.x, words.w[i + 1] = four.y, words.w[i + 2] = four.z, words.w[i + 3] = four.w;
    }
  } else if constexpr (kCount % 2 == 0) {
#pragma unroll
    for (int i = 0; i < kCount; i += 2) {
      const uint2 two = *(const uint2*)((const unsigned*)from + i);
      words.w[i] = two.x, words.w[i + 1] = two.y;
    }
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) words.w[i] = ((const unsigned*)from)[i];
  }
  return words;
}
template <int kCount>
__device__ __forceinline__ void store_words(void* to, const Words<kCount>& words) {
  if constexpr (kCount % 4 == 0) {
#pragma unroll
    for (int i = 0; i < kCount; i += 4)
      *(uint4*)((unsigned*)to + i) = make_uint4(words.w[i], words.w[i + 1], words.w[i + 2], words.w[i + 3]);
  } else if constexpr (kCount % 2 == 0) {
#pragma unroll
    for (int i = 0; i < kCount; i += 2) *(uint2*)((unsigned*)to + i) = make_uint2(words.w[i], words.w[i + 1]);
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) ((unsigned*)to)[i] = words.w[i];
  }
}
// Element e of kBits bits, zero-extended. put_element ORs an element into words whose bits there are 0.
template <int kBits, int kCount>
__device__ __forceinline__ unsigned element(const Words<kCount>& words, int e) {
  if constexpr (kBits == 32) return words.w[e];
  constexpr int kEach = 32 / kBits;
  return (words.w[e / kEach] >> (kBits * (e % kEach))) & ((1u << (kBits & 31)) - 1u);
}
template <int kBits, int kCount>
__device__ __forceinline__ void put_element(Words<kCount>& words, int e, unsigned bits) {
  constexpr int kEach = 32 / kBits;
  words.w[e / kEach] |= (kBits == 32 ? bits : bits & ((1u << (kBits & 31)) - 1u)) << (kBits * (e % kEach) & 31);
}

// Converts float16 element e to float. The halves of the word are named as 16-bit registers, which needs no shift.
template <int kCount>
__device__ __forceinline__ float fp16_element(const Words<kCount>& words, int e) {
  unsigned short low, high;
  asm("mov.b32 {%0, %1}, %2;" : "=h"(low), "=h"(high) : "r"(words.w[e / 2]));
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(e % 2 == 0 ? low : high));
  return x;
}

__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

// Loads four 8x8 matrices of 16-bit elements as mma fragments (ldmatrix). Lanes 8 i to 8 i + 7 pass the addresses of
// the rows of matrix i.
__device__ __forceinline__ void load_matrices(unsigned (&m)[4], unsigned row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(row));
}
template <int kOffset = 0>
__device__ __forceinline__ void load_matrices_transposed(unsigned (&m)[4], unsigned row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4+%5];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(row), "n"(kOffset));
}

// Loads kCount mma fragments (ldmatrix) that are kStep bytes apart.
template <int kStep, int kAt = 0, int kCount>
__device__ __forceinline__ void load_pieces(unsigned (&m)[kCount][4], unsigned row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4+%5];"
               : "=r"(m[kAt][0]), "=r"(m[kAt][1]), "=r"(m[kAt][2]), "=r"(m[kAt][3])
               : "r"(row), "n"(kAt * kStep));
  if constexpr (kAt + 1 < kCount) load_pieces<kStep, kAt + 1>(m, row);
}
template <int kStep, int kAt = 0, int kCount>
__device__ __forceinline__ void load_pieces_transposed(unsigned (&m)[kCount][4], unsigned row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4+%5];"
               : "=r"(m[kAt][0]), "=r"(m[kAt][1]), "=r"(m[kAt][2]), "=r"(m[kAt][3])
               : "r"(row), "n"(kAt * kStep));
  if constexpr (kAt + 1 < kCount) load_pieces_transposed<kStep, kAt + 1>(m, row);
}

__device__ __forceinline__ void mma_fp16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// sum += a * b for 16 * kRows by 16 * kColumns elements of a warp.
template <auto kMma, class Sum, int kRows, int kColumns>
__device__ __forceinline__ void multiply_fragments(Sum (&sum)[kRows][2 * kColumns][4], const unsigned (&a)[kRows][4],
                                                   const unsigned (&b)[kColumns][4]) {
#pragma unroll
  for (int i = 0; i < kRows; ++i)
#pragma unroll
    for (int j = 0; j < 2 * kColumns; ++j) kMma(sum[i][j], a[i], {b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]});
}

// e^x for x <= 0. The relative error grows with |x|, but the absolute error stays small, because e^x falls faster.
__device__ __forceinline__ float exp_fast(float x) { return exp2_fast(x * 1.44269504f); }

// Online softmax: the maximum of the elements so far, and the sum of e^(element - maximum).
struct OnlineSoftmax {
  // Minus infinity. Not an intrinsic, because nvcc compiles member initializers for the host as well.
  float greatest = -1.0e38f * 10.0f;
  float sum = 0.0f;
  // What is subtracted from elements if their maximum is x: finite, because infinity - infinity is NaN. After a NaN,
  // the sum is NaN anyway.
  __device__ __forceinline__ static float shift_of(float x) {
    return fminf(fmaxf(x, -3.402823466e38f), 3.402823466e38f);
  }
  __device__ __forceinline__ float shift() const { return shift_of(greatest); }
  template <int kCount>
  __device__ __forceinline__ void take_elements(const float (&elements)[kCount]) {
    float now = greatest;
#pragma unroll
    for (int e = 0; e < kCount; ++e) now = nan_max(now, elements[e]);
    if (!(now <= greatest)) {  // also if `now` is NaN
      sum *= exp_fast(shift() - shift_of(now));
      greatest = now;
    }
#pragma unroll
    for (int e = 0; e < kCount; ++e) sum += exp_fast(elements[e] - shift());
  }
  // Merges a partial result: its maximum `more` and its sum `below`, relative to that maximum.
  __device__ __forceinline__ void merge_partial(float more, float below) {
    const float now = nan_max(greatest, more);
    if (!(now <= greatest)) {
      sum *= exp_fast(shift() - shift_of(now));
      greatest = now;
    }
    sum += below * exp_fast(shift_of(more) - shift());
  }
};

// Rounds two floats to 16 bits, and packs them in a word.
__device__ __forceinline__ unsigned pack_bf16(float low, float high) {
  unsigned word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}
__device__ __forceinline__ unsigned pack_fp16(float low, float high) {
  unsigned word;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}

// Rounds values to 16-bit floats and packs them, two per conversion.
template <int kCount>
__device__ __forceinline__ Words<kCount / 2> bf16_words(const float (&values)[kCount]) {
  Words<kCount / 2> words;
#pragma unroll
  for (int i = 0; i < kCount / 2; ++i) words.w[i] = pack_bf16(values[2 * i], values[2 * i + 1]);
  return words;
}
template <int kCount>
__device__ __forceinline__ Words<kCount / 2> fp16_words(const float (&values)[kCount]) {
  Words<kCount / 2> words;
#pragma unroll
  for (int i = 0; i < kCount / 2; ++i) words.w[i] = pack_fp16(values[2 * i], values[2 * i + 1]);
  return words;
}

// Byte offset of a unit of 16 bytes in an XOR-swizzled tile with kUnits units per line: ldmatrix reads the same unit of
// eight lines without bank conflicts.
template <int kUnits>
__device__ __forceinline__ unsigned swizzled(int line, int unit) {
  constexpr int kLinesABank = kUnits < 8 ? 8 / kUnits : 1, kTurns = kUnits < 8 ? kUnits : 8;
  return 16 * (line * kUnits + (unit ^ (line / kLinesABank % kTurns)));
}

// Byte offset of the row that the lane passes to ldmatrix for the 16x16 fragment at (across, depth) of a tile.
// `across`: M or N; `depth`: K in units of two bytes; kAlongDepth: the tile is K-major. The 8x8 matrices come in this
// order of (across, K): left operand (0, 0) (8, 0) (0, 8) (8, 8), right operand (0, 0) (0, 8) (8, 0) (8, 8).
template <bool kLeft, bool kAlongDepth, int kUnits>
__device__ __forceinline__ unsigned ldmatrix_offset(int across, int depth, int lane) {
  const int first = lane / 8 % 2 * 8, second = lane / 16 * 8;
  const int lane_across = across + (kLeft ? first : second), lane_depth = depth + (kLeft ? second : first);
  return kAlongDepth ? swizzled<kUnits>(lane_across + lane % 8, lane_depth / 8)
                     : swizzled<kUnits>(lane_depth + lane % 8, lane_across / 8);
}
// Loads kPieces 16x16 mma fragments that are 16 apart in M or N.
template <bool kLeft, bool kAlongDepth, int kUnits, int kPieces>
__device__ __forceinline__ void load_fragments(unsigned (&pieces)[kPieces][4], unsigned tile, int across, int depth,
                                               int lane) {
#pragma unroll
  for (int i = 0; i < kPieces; ++i) {
    if constexpr (kAlongDepth)
      load_matrices(pieces[i], tile + i * 256 * kUnits + ldmatrix_offset<kLeft, true, kUnits>(across, depth, lane));
    else
      load_matrices_transposed(pieces[i], tile + depth * 16 * kUnits +
                                              ldmatrix_offset<kLeft, false, kUnits>(across + 16 * i, 0, lane));
  }
}

// ldmatrix addresses of a warp's fragments, computed before the loop over K: one per slice of K (32 bytes) for K-major
// tiles, one per fragment for MN-major ones. All others are at constant distances from these.
template <bool kLeft, bool kAlongDepth, int kUnits, int kPieces, int kSlices>
struct FragmentAddresses {
  unsigned at[kAlongDepth ? kSlices : kPieces];

  __device__ __forceinline__ FragmentAddresses(unsigned tile, int across, int lane) {
#pragma unroll
    for (int i = 0; i < (kAlongDepth ? kSlices : kPieces); ++i) {
      at[i] = tile + ldmatrix_offset<kLeft, kAlongDepth, kUnits>(across + (kAlongDepth ? 0 : 16 * i),
                                                                kAlongDepth ? 16 * i : 0, lane);
      asm("" : "+r"(at[i]));  // keeps it in a register; the compiler would recompute it
    }
  }
  template <int kSlice = 0>
  __device__ __forceinline__ void load(unsigned (&pieces)[kPieces][4], unsigned stage, int slice) const {
    if constexpr (kAlongDepth) {
      load_pieces<256 * kUnits>(pieces, at[slice] + stage);
    } else if (slice == kSlice) {
#pragma unroll
      for (int i = 0; i < kPieces; ++i) load_matrices_transposed<256 * kUnits * kSlice>(pieces[i], at[i] + stage);
    } else if constexpr (kSlice + 1 < kSlices) {
      load<kSlice + 1>(pieces, stage, slice);
    }
  }
};

// 1 / x over the full range of float.
__device__ __forceinline__ float reciprocal_fast(float x) {
  float y;
  asm("rcp.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// kCount elements that are read or written by one vector access.
template <class T, int kCount>
struct alignas(sizeof(T) * kCount) Neighbours {
  T v[kCount];
};

// Index of an element of a warp's staged accumulators: 16 rows by kWidth columns in shared memory, rows padded by 8.
// kHalves: the order of columns for lanes that read eight as two vectors, 0-3 8-11 ... (padding of 4) 4-7 12-15 ...
template <int kWidth, bool kHalves = true>
__device__ __forceinline__ constexpr int staged_place(int row, int column) {
  if constexpr (!kHalves && kWidth == 16) return row * 16 + (column ^ (row / 2 % 2 * 8));  // a read takes two rows
  if constexpr (!kHalves) return row * (kWidth + 8) + column;
  return row * (kWidth + 8) + column % 8 / 4 * (kWidth / 2 + 4) + column / 8 * 4 + column % 4;
}
// Stores a lane's mma accumulators of eight columns: two of its row, and two of the row eight below kLower bytes
// further. One asm statement, because NVRTC's time grows with their number.
template <int kAt, int kLower>
__device__ __forceinline__ void store_pairs(unsigned at, const float (&four)[4]) {
  asm volatile("st.shared.v2.f32 [%0+%5], {%1, %2};\nst.shared.v2.f32 [%0+%6], {%3, %4};"
               :
               : "r"(at), "f"(four[0]), "f"(four[1]), "f"(four[2]), "f"(four[3]), "n"(kAt), "n"(kAt + kLower)
               : "memory");
}
template <int kAt, int kLower>
__device__ __forceinline__ void store_pairs(unsigned at, const int (&four)[4]) {
  asm volatile("st.shared.v2.s32 [%0+%5], {%1, %2};\nst.shared.v2.s32 [%0+%6], {%3, %4};"
               :
               : "r"(at), "r"(four[0]), "r"(four[1]), "r"(four[2]), "r"(four[3]), "n"(kAt), "n"(kAt + kLower)
               : "memory");
}
template <int kLater, int kLower, int kAt = 0, class Sum, int kEights>
__device__ __forceinline__ void store_pairs_of_eights(unsigned at, const Sum (&sum)[kEights][4]) {
  store_pairs<kAt * kLater, kLower>(at, sum[kAt]);
  if constexpr (kAt + 1 < kEights) store_pairs_of_eights<kLater, kLower, kAt + 1>(at, sum);
}
// Stages 16 rows of a warp's mma accumulators.
template <bool kHalves, class Sum, int kEights>
__device__ __forceinline__ void stage_sums(Sum* staged, const Sum (&sum)[kEights][4], int lane) {
  constexpr int kWidth = 8 * kEights, kLower = 4 * staged_place<kWidth, kHalves>(8, 0);
  const unsigned first = shared_address(staged + staged_place<kWidth, kHalves>(lane / 4, lane % 4 * 2));
  if constexpr (!kHalves && kWidth == 16) {  // in some rows the second eight columns come first
    const unsigned second = shared_address(staged + staged_place<kWidth, kHalves>(lane / 4, 8 + lane % 4 * 2));
    store_pairs<0, kLower>(first, sum[0]);
    store_pairs<0, kLower>(second, sum[1]);
  } else {
    store_pairs_of_eights<4 * staged_place<kWidth, kHalves>(0, 8), kLower>(first, sum);
  }
}
// The row of group number `item` of eight columns, in an order that has no bank conflicts.
template <int kWidth>
__device__ __forceinline__ int staged_row(int item) {
  if constexpr (kWidth == 32) return item / 16 * 4 + item % 8 / 4 * 2 + item / 8 % 2;
  return item / (kWidth / 8);
}
template <class Sum>
struct EightSums {
  Sum v[8];
};
// Reads eight staged columns; `column` is a multiple of 8.
template <int kWidth, class Sum>
__device__ __forceinline__ EightSums<Sum> eight_staged(const Sum* staged, int row, int column) {
  const auto a = *(const Neighbours<Sum, 4>*)(staged + staged_place<kWidth>(row, column));
  const auto b = *(const Neighbours<Sum, 4>*)(staged + staged_place<kWidth>(row, column + 4));
  return {a.v[0], a.v[1], a.v[2], a.v[3], b.v[0], b.v[1], b.v[2], b.v[3]};
}

// The position of tile number `tile` among `down` by `across` output tiles. Bands of kHeight tile rows follow one
// another, each column by column, so that concurrent blocks share both operands' lines in the L2 cache.
struct TilePlace {
  int row, column;
};
template <int kHeight>
__device__ __forceinline__ TilePlace tile_in_order(int tile, int down, int across) {
  const int group = tile / (kHeight * across), in_group = tile % (kHeight * across);
  const int height = min(down - group * kHeight, kHeight);
  return {group * kHeight + in_group % height, in_group / height};
}

}  // namespace

// ---- guards_0_add ----------------------------------------------------------------------------------------
// shifted = add(x, bias)
// writes shifted: float16[batch, n]
//   shifted[i, j] = x[i, j] + bias[j]
// A thread makes one element.
extern "C" __global__ void __launch_bounds__(256)
guards_0_add(const fp16* __restrict__ x, const fp16* __restrict__ bias, fp16* __restrict__ shifted,
         const long long batch, const long long dim_n) {
  const long long t = (long long)blockIdx.x * 256 + threadIdx.x;
  if (t >= (batch * dim_n)) return;
  const long long j = t % dim_n;
  const long long rest = t / dim_n;
  shifted[dim_n * rest + j] = to_fp16(from_fp16(x[dim_n * rest + j]) + from_fp16(bias[j]));
}

// ---- guards_1_add_guarded --------------------------------------------------------------------------------
// Where n % 8 == 0 && 1.0 * batch * n <= 2147418112:
// shifted = add(x, bias)
// writes shifted: float16[batch, n]
//   shifted[i, j] = x[i, j] + bias[j]
// A thread makes 8 neighbouring elements.
extern "C" __global__ void __launch_bounds__(128)
guards_1_add_guarded(const fp16* __restrict__ x, const fp16* __restrict__ bias, fp16* __restrict__ shifted,
         const int batch, const int dim_n) {
  const int t = blockIdx.x * 128 + threadIdx.x;
  if (t >= (batch * (dim_n / 8))) return;
  const int j = t % (dim_n / 8);
  const int rest = t / (dim_n / 8);
  const Words<4> x_w = load_words<4>(x + (dim_n * rest + j * 8));
  const Words<4> bias_w = load_words<4>((const uint4*)bias + j);
  float shifted_v[8];
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    shifted_v[e] = fp16_element(x_w, e) + fp16_element(bias_w, e);
  }
  store_words(shifted + (dim_n * rest + j * 8), fp16_words(shifted_v));
}

// ---- guards_2_softmax ------------------------------------------------------------------------------------
// rows = softmax(long)
// writes rows: float32[3, 100*n]
extern "C" __global__ void __launch_bounds__(512, 1)
guards_2_softmax(const float* __restrict__ long_v, float* __restrict__ rows, const long long dim_n) {
  const int lane = threadIdx.x;
  const long long row = (long long)blockIdx.x;
  OnlineSoftmax running;
  Words<4>* const long_row = (Words<4>*)(dynamic_shared + 0) + threadIdx.x;
#pragma unroll 4
  for (long long k = lane, turn = 0; turn < 19 && k < (dim_n * 25); k += 512, ++turn) {
    Words<4> long_w;
    long_w = load_words<4>(long_v + (dim_n * row * 100 + k * 4));
    store_words(&long_row[(turn) * 512], long_w);
    float elements[4];
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      elements[e] = __uint_as_float(element<32>(long_w, e));
    }
    running.take_elements(elements);
  }
#pragma unroll 4
  for (long long k_2 = lane + 9728; k_2 < (dim_n * 25); k_2 += 512) {
    const Words<4> long_w_2 = load_words<4>(long_v + (dim_n * row * 100 + k_2 * 4));
    float elements_2[4];
#pragma unroll
    for (int e_2 = 0; e_2 < 4; ++e_2) {
      elements_2[e_2] = __uint_as_float(element<32>(long_w_2, e_2));
    }
    running.take_elements(elements_2);
  }
  float row_max = running.greatest;
  row_max = block_reduce<512, 0>(row_max, Maximum{});
  const float t = (fabsf(row_max) >= 1073741824.0f) ? 1.0f : 1.442695f;
  const float t_2 = -(row_max * t);
  float row_sum = running.sum * (exp2_fast(fmaf(running.shift(), t, t_2)));
  row_sum = block_reduce<512, 1>(row_sum, Sum{});
  const float t_3 = reciprocal_fast(row_sum);
#pragma unroll 4
  for (long long j = lane, turn_2 = 0; turn_2 < 19 && j < (dim_n * 25); j += 512, ++turn_2) {
    const Words<4> long_w_3 = load_words<4>(&long_row[(turn_2) * 512]);
    Words<4> rows_w = {};
#pragma unroll
    for (int e_3 = 0; e_3 < 4; ++e_3) {
      put_element<32>(rows_w, e_3, __float_as_uint(exp2_fast(fmaf(__uint_as_float(element<32>(long_w_3, e_3)), t, t_2)) * t_3));
    }
    store_words(rows + (dim_n * row * 100 + j * 4), rows_w);
  }
#pragma unroll 4
  for (long long j_2 = lane + 9728; j_2 < (dim_n * 25); j_2 += 512) {
    const Words<4> long_w_4 = load_words<4>(long_v + (dim_n * row * 100 + j_2 * 4));
    Words<4> rows_w_2 = {};
#pragma unroll
    for (int e_4 = 0; e_4 < 4; ++e_4) {
      put_element<32>(rows_w_2, e_4, __float_as_uint(exp2_fast(fmaf(__uint_as_float(element<32>(long_w_4, e_4)), t, t_2)) * t_3));
    }
    store_words(rows + (dim_n * row * 100 + j_2 * 4), rows_w_2);
  }
}

// ---- guards_3_softmax_guarded ----------------------------------------------------------------------------
// Where n <= 327:
// rows = softmax(long)
// writes rows: float32[3, 100*n]
extern "C" __global__ void __launch_bounds__(512, 1)
guards_3_softmax_guarded(const float* __restrict__ long_v, float* __restrict__ rows, const int dim_n) {
  const int lane = threadIdx.x;
  const int row = blockIdx.x;
  float row_max = __uint_as_float(0xff800000u);
  float long_row[64];
  float t_row[64];
#pragma unroll
  for (int turn = 0; turn < 16; ++turn) {
    const int k = lane + turn * 512;
    if (turn * 512 < (dim_n * 25) - lane) {
      const Words<4> long_w = load_words<4>(long_v + (dim_n * row * 100 + k * 4));
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        long_row[turn * 4 + e] = __uint_as_float(element<32>(long_w, e));
        row_max = nan_max(row_max, long_row[turn * 4 + e]);
      }
    }
  }
  row_max = block_reduce<512, 0>(row_max, Maximum{});
  const float t = (fabsf(row_max) >= 1073741824.0f) ? 1.0f : 1.442695f;
  const float t_2 = -(row_max * t);
  float row_sum = 0.0f;
#pragma unroll
  for (int turn_2 = 0; turn_2 < 16; ++turn_2) {
    const int k_2 = lane + turn_2 * 512;
    if (turn_2 * 512 < (dim_n * 25) - lane) {
#pragma unroll
      for (int e_2 = 0; e_2 < 4; ++e_2) {
        t_row[turn_2 * 4 + e_2] = exp2_fast(fmaf(long_row[turn_2 * 4 + e_2], t, t_2));
        row_sum += t_row[turn_2 * 4 + e_2];
      }
    }
  }
  row_sum = block_reduce<512, 1>(row_sum, Sum{});
  const float t_3 = reciprocal_fast(row_sum);
#pragma unroll
  for (int turn_3 = 0; turn_3 < 16; ++turn_3) {
    const int j = lane + turn_3 * 512;
    if (turn_3 * 512 < (dim_n * 25) - lane) {
      Words<4> rows_w = {};
#pragma unroll
      for (int e_3 = 0; e_3 < 4; ++e_3) {
        put_element<32>(rows_w, e_3, __float_as_uint(t_row[turn_3 * 4 + e_3] * t_3));
      }
      store_words(rows + (dim_n * row * 100 + j * 4), rows_w);
    }
  }
}

// ---- guards_4_matmul -------------------------------------------------------------------------------------
// product = matmul(left, right)
// writes product: float16[16, 32]
// A block makes a 64x64 tile; 32 of k at a time go through shared memory, products on tensor cores.
extern "C" __global__ void __launch_bounds__(128)
guards_4_matmul(const fp16* __restrict__ left, const fp16* __restrict__ right, fp16* __restrict__ product,
         const int dim_k) {
  __shared__ __align__(16) unsigned short left_tile[2560];
  __shared__ __align__(16) unsigned short right_tile[2560];
  const int tile = blockIdx.x;
  const int column0 = tile % 1 * 64;
  const int row0 = tile / 1 % 1 * 64;
  const int warp = threadIdx.x / 32, warp_lane = threadIdx.x % 32;
  const int warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;
  float sum[2][4][4] = {};
  for (int k0 = 0; k0 < dim_k; k0 += 32) {
#pragma unroll
    for (int e = threadIdx.x; e < 2048; e += 128) {
      const int line = e / 32, place = e % 32;
      const int at = row0 + line;
      const int k = k0 + place;
      unsigned short one = 0;
      if (at < 16 && k < dim_k) {
        one = left[dim_k * at + k];
      }
      left_tile[line * 40 + place] = one;
    }
#pragma unroll
    for (int e_2 = threadIdx.x; e_2 < 256; e_2 += 128) {
      const int line_2 = e_2 / 8, place_2 = e_2 % 8 * 8;
      const int at_2 = k0 + line_2;
      const int k_2 = column0 + place_2;
      uint4 elements = make_uint4(0, 0, 0, 0);
      if (at_2 < dim_k && k_2 < 32) {
        elements = *(const uint4*)(right + k_2 + at_2 * 32);
      }
      *(uint4*)(right_tile + line_2 * 72 + place_2) = elements;
    }
    __syncthreads();
#pragma unroll
    for (int kk = 0; kk < 32; kk += 16) {
      unsigned a[2][4], b[2][4];
      load_pieces<1280>(a, shared_address(&left_tile[(warp_row + warp_lane / 8 % 2 * 8 + warp_lane % 8) * 40 + kk + warp_lane / 16 * 8]));
      load_pieces_transposed<32>(b, shared_address(&right_tile[(kk + warp_lane / 8 % 2 * 8 + warp_lane % 8) * 72 + warp_column + warp_lane / 16 * 8]));
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) mma_fp16(sum[i][j], a[i], {b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]});
    }
    __syncthreads();
  }
  float sum_items[32];
#pragma unroll
  for (int i = 0; i < 32; ++i) sum_items[i] = sum[i / 16][i / 4 % 4][i % 4];
#pragma unroll
  for (int tile_item = 0; tile_item < 32; ++tile_item) {
    const int row = row0 + warp_row + tile_item / 16 * 16 + tile_item % 4 / 2 * 8 + warp_lane / 4;
    const int column = column0 + warp_column + tile_item / 4 % 4 * 8 + warp_lane % 4 * 2 + tile_item % 2;
    if (row < 16 && column < 32) {
      product[row * 32 + column] = to_fp16(sum_items[tile_item]);
    }
  }
}

// ---- guards_5_matmul_guarded -----------------------------------------------------------------------------
// Where k % 8 == 0:
// product = matmul(left, right)
// writes product: float16[16, 32]
// A block makes 16x32, each of its warps 16x16, on tensor cores; 64 of k are a tile, 4 tiles are in shared memory or on the way.
extern "C" __global__ void __launch_bounds__(64, 8)
guards_5_matmul_guarded(const fp16* __restrict__ left_2, const fp16* __restrict__ right_2, fp16* __restrict__ product,
         const int dim_k) {
  const unsigned stages = shared_address(dynamic_shared);
  const TilePlace tile = tile_in_order<8>((int)blockIdx.x, 1, 1);
  const int row0 = tile.row * 16, column0 = tile.column * 32;
  const int warp = threadIdx.x / 32, warp_lane = threadIdx.x % 32;
  const int warp_row = warp / 2 * 16, warp_column = warp % 2 * 16;
  float sum[1][2][4] = {};
  const int left_unit = threadIdx.x % 8 * 8, left_line = threadIdx.x / 8;
  unsigned left_to = stages + swizzled<8>(left_line, left_unit / 8);
  asm("" : "+r"(left_to));  // or else it is computed anew in the loop
  const fp16* left_from[2];
#pragma unroll
  for (int each = 0; each < 2; ++each) {
    const int row = row0 + left_line + each * 8;
    left_from[each] = left_2 + (dim_k * row + left_unit);
  }
  int left_there[2];
#pragma unroll
  for (int each = 0; each < 2; ++each) left_there[each] = 16;
  const int right_unit = threadIdx.x % 4 * 8, right_line = threadIdx.x / 4;
  unsigned right_to = stages + 2048 + swizzled<4>(right_line, right_unit / 8);
  asm("" : "+r"(right_to));  // or else it is computed anew in the loop
  const fp16* right_from;
  {
    const int column = column0 + right_unit;
    right_from = right_2 + (column + (right_line) * 32);
  }
  int right_there[4];
#pragma unroll
  for (int each = 0; each < 4; ++each) right_there[each] = 16;
  int next_k = 0;
  const auto fetch = [&](unsigned stage) {
#pragma unroll
    for (int each = 0; each < 2; ++each)
      if (next_k + left_unit >= dim_k) left_there[each] = 0;
    copy_lines<1024>(left_to + stage, left_from, left_there);
#pragma unroll
    for (int each = 0; each < 2; ++each) left_from[each] += 64;
#pragma unroll
    for (int each = 0; each < 4; ++each)
      if (next_k + right_line + each * 16 >= dim_k) right_there[each] = 0;
    copy_lines<1024, 1024>(right_to + stage, right_from, right_there);
    right_from += 2048;
    next_k += 64;
  };
  const int steps = ((dim_k + 63) / 64);
#pragma unroll
  for (int s = 0; s < 3; ++s) {
    if (s < steps) fetch(s * 6144);
    commit_copies();
  }
  unsigned reading = 0, writing = 18432;  // where stages begin
  const FragmentAddresses<true, true, 8, 1, 4> left_places(stages + 0, warp_row, warp_lane);
  const FragmentAddresses<false, false, 4, 1, 4> right_places(stages + 2048, warp_column, warp_lane);
  unsigned left[2][1][4], right[2][1][4];
  const auto load_2 = [&](int buffer, unsigned stage, int slice) {
    left_places.load(left[buffer], stage, slice);
    right_places.load(right[buffer], stage, slice);
  };
  wait_for_groups<2>();
  __syncthreads();
  load_2(0, 0, 0);
  for (int step = 0; step < steps; ++step) {
#pragma unroll
    for (int slice = 0; slice < 4; ++slice) {
      if (slice == 3) {
        wait_for_groups<2>();  // the next tile is there, and nobody needs the one before this
        __syncthreads();
        writing = reading, reading = reading == 18432 ? 0 : reading + 6144;
      }
      if (slice < 3 || step + 1 < steps) load_2((slice + 1) % 2, reading, (slice + 1) % 4);
      if (slice == 0) {
        if (step + 3 < steps) fetch(writing);
        commit_copies();
      }
      multiply_fragments<mma_fp16>(sum, left[slice % 2], right[slice % 2]);
    }
  }
  __syncthreads();  // the tiles' memory is free
  float* const staged = (float*)dynamic_shared + warp * 384;
#pragma unroll
  for (int piece = 0; piece < 1; piece += 1) {
    stage_sums<true>(staged, sum[0], warp_lane);
    __syncwarp();
    {
      const int place = warp_lane % 2 * 8;
      const int column_2 = column0 + warp_column + place;
      const int eight = (unsigned int)column_2 / 8;
      const int first_row = row0 + warp_row + piece * 16;
      {
        const int line = staged_row<16>(warp_lane);
        const int row_2 = first_row + line;
        const EightSums<float> sum_v = eight_staged<16>(staged, line, place);
        float product_v[8];
#pragma unroll
        for (int e = 0; e < 8; ++e) {
          product_v[e] = sum_v.v[e];
        }
        store_words(product + (eight * 8 + row_2 * 32), fp16_words(product_v));
      }
    }
    __syncwarp();
  }
}

#ifndef __CUDACC_RTC__  // ---- host part ------------------------------------------------------------
#include <cuda_runtime.h>
#include <stddef.h>
#include <stdio.h>

typedef struct guards_context guards_context;
typedef struct {
  void* cublaslt;           // unused: this file calls no cuBLASLt
  void* const* nccl_comms;  // unused: this file calls no NCCL
} guards_libraries;
typedef struct {
  const void* x;  // float16[batch, n]
  long long x_shape[2];
  const void* bias;  // float16[n]
  long long bias_shape[1];
  const void* long_v;  // float32[3, 100*n]
  long long long_v_shape[2];
  const void* left;  // float16[16, k]
  long long left_shape[2];
  const void* right;  // float16[k, 32]
  long long right_shape[2];
  void* shifted;  // float16[batch, n]
  void* rows;  // float32[3, 100*n]
  void* product;  // float16[16, 32]
} guards_args;

struct guards_context {
  char error[256];
  guards_libraries libraries;
};

namespace {

struct guards_sizes {
  long long batch;  // 1 to 2147483647, a multiple of 1
  long long n;  // 1 to 2147483647, a multiple of 1
  long long k;  // 1 to 4096, a multiple of 1
};

inline long long floor_div(long long a, long long b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
inline long long least(long long a, long long b) { return a < b ? a : b; }

inline cudaError_t complain(guards_context* ctx, cudaError_t status, const char* text) {
  if (ctx) snprintf(ctx->error, sizeof ctx->error, "%s", text);
  return status;
}

// Enqueues one kernel; a grid without blocks is nothing to do.
template <class... Arguments>
inline cudaError_t launch(const void* kernel, long long grid_x, long long grid_y, long long grid_z, dim3 block,
                          long long shared_bytes, cudaStream_t stream, Arguments... arguments) {
  if (grid_x <= 0 || grid_y <= 0 || grid_z <= 0) return cudaSuccess;
  void* pointers[] = {&arguments...};
  return cudaLaunchKernel(kernel, dim3(unsigned(grid_x), unsigned(grid_y), unsigned(grid_z)), block, pointers,
                          size_t(shared_bytes), stream);
}

inline cudaError_t check_constants(guards_context* ctx, const guards_args* args) {
  if (!args) return complain(ctx, cudaErrorInvalidValue, "no arguments");
  return cudaSuccess;
}

inline cudaError_t solve(guards_context* ctx, const guards_args* args, guards_sizes& n) {
  const cudaError_t status = check_constants(ctx, args);
  if (status != cudaSuccess) return status;
  n.batch = args->x_shape[0];
  if (n.batch < 1 || n.batch > 2147483647)
    return complain(ctx, cudaErrorInvalidValue, "batch is not from 1 to 2147483647, a multiple of 1");
  n.n = args->x_shape[1];
  if (n.n < 1 || n.n > 2147483647)
    return complain(ctx, cudaErrorInvalidValue, "n is not from 1 to 2147483647, a multiple of 1");
  n.k = args->left_shape[1];
  if (n.k < 1 || n.k > 4096)
    return complain(ctx, cudaErrorInvalidValue, "k is not from 1 to 4096, a multiple of 1");
  if (args->x_shape[0] != n.batch || args->x_shape[1] != n.n)
    return complain(ctx, cudaErrorInvalidValue, "the extents of x are not float16[batch, n]");
  if (args->bias_shape[0] != n.n)
    return complain(ctx, cudaErrorInvalidValue, "the extents of bias are not float16[n]");
  if (args->long_v_shape[0] != 3 || args->long_v_shape[1] != 100 * n.n)
    return complain(ctx, cudaErrorInvalidValue, "the extents of long are not float32[3, 100*n]");
  if (args->left_shape[0] != 16 || args->left_shape[1] != n.k)
    return complain(ctx, cudaErrorInvalidValue, "the extents of left are not float16[16, k]");
  if (args->right_shape[0] != n.k || args->right_shape[1] != 32)
    return complain(ctx, cudaErrorInvalidValue, "the extents of right are not float16[k, 32]");
  return cudaSuccess;
}

inline cudaError_t check_pointers(guards_context* ctx, const guards_args* args, const guards_sizes& n) {
  (void)ctx, (void)args, (void)n;
  if (!args->x)
    return complain(ctx, cudaErrorInvalidValue, "x is null");
  if (reinterpret_cast<size_t>(args->x) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "x is not aligned to 16 bytes");
  if (!args->bias)
    return complain(ctx, cudaErrorInvalidValue, "bias is null");
  if (reinterpret_cast<size_t>(args->bias) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "bias is not aligned to 16 bytes");
  if (!args->long_v)
    return complain(ctx, cudaErrorInvalidValue, "long is null");
  if (reinterpret_cast<size_t>(args->long_v) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "long is not aligned to 16 bytes");
  if (!args->left)
    return complain(ctx, cudaErrorInvalidValue, "left is null");
  if (reinterpret_cast<size_t>(args->left) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "left is not aligned to 16 bytes");
  if (!args->right)
    return complain(ctx, cudaErrorInvalidValue, "right is null");
  if (reinterpret_cast<size_t>(args->right) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "right is not aligned to 16 bytes");
  if (!args->shifted)
    return complain(ctx, cudaErrorInvalidValue, "shifted is null");
  if (reinterpret_cast<size_t>(args->shifted) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "shifted is not aligned to 16 bytes");
  if (!args->rows)
    return complain(ctx, cudaErrorInvalidValue, "rows is null");
  if (reinterpret_cast<size_t>(args->rows) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "rows is not aligned to 16 bytes");
  if (!args->product)
    return complain(ctx, cudaErrorInvalidValue, "product is null");
  if (reinterpret_cast<size_t>(args->product) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "product is not aligned to 16 bytes");
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t guards_create(guards_context** ctx, const guards_libraries* libs) {
  if (!ctx) return cudaErrorInvalidValue;
  *ctx = nullptr;
  guards_context* made = new guards_context();
  if (libs) made->libraries = *libs;
  cudaError_t status = cudaSuccess;
  if (status == cudaSuccess)
    status = cudaFuncSetAttribute(reinterpret_cast<const void*>(guards_2_softmax), cudaFuncAttributeMaxDynamicSharedMemorySize, 155648);
  if (status == cudaSuccess)
    status = cudaFuncSetAttribute(reinterpret_cast<const void*>(guards_5_matmul_guarded), cudaFuncAttributeMaxDynamicSharedMemorySize, 24576);
  if (status != cudaSuccess) {
    delete made;
    return status;
  }
  *ctx = made;
  return cudaSuccess;
}

// Bytes; (size_t)-1 where the extents contradict one another or the model. Pointers are not looked at.
size_t guards_workspace_bytes(const guards_args* args) {
  guards_sizes n;
  return solve(nullptr, args, n) == cudaSuccess ? size_t(0) : size_t(-1);
}

// The same; of the extents only those of constants are looked at. 0: nothing is prepared.
size_t guards_prepared_bytes(const guards_args* args) {
  return check_constants(nullptr, args) == cudaSuccess ? size_t(0) : size_t(-1);
}

cudaError_t guards_prepare(guards_context* ctx, const guards_args* args, void* prepared, cudaStream_t stream) {
  (void)ctx, (void)args, (void)prepared, (void)stream;  // nothing is prepared
  return cudaSuccess;
}

cudaError_t guards_launch(guards_context* ctx, const guards_args* args, const void* prepared, void* workspace,
                     cudaStream_t stream) {
  if (!ctx) return cudaErrorInvalidValue;
  guards_sizes n;
  cudaError_t status = solve(ctx, args, n);
  if (status == cudaSuccess) status = check_pointers(ctx, args, n);
  if (status != cudaSuccess) return status;
  char* const work = static_cast<char*>(workspace);
  char* const ready = const_cast<char*>(static_cast<const char*>(prepared));
  (void)work, (void)ready, (void)stream;
  // shifted
  if (n.n % 8 == 0 && 1.0 * n.batch * n.n <= 2147418112) {
  status = launch(reinterpret_cast<const void*>(guards_1_add_guarded), floor_div(n.batch * floor_div(n.n, 8) + 127, 128), 1, 1, dim3(128, 1, 1), 0, stream,
                  static_cast<const void*>(args->x),
                  static_cast<const void*>(args->bias),
                  static_cast<void*>(args->shifted),
                  static_cast<int>(n.batch),
                  static_cast<int>(n.n));
  if (status != cudaSuccess) return complain(ctx, status, "guards_1_add_guarded could not be launched");
  } else {
  status = launch(reinterpret_cast<const void*>(guards_0_add), floor_div(n.batch * n.n + 255, 256), 1, 1, dim3(256, 1, 1), 0, stream,
                  static_cast<const void*>(args->x),
                  static_cast<const void*>(args->bias),
                  static_cast<void*>(args->shifted),
                  static_cast<long long>(n.batch),
                  static_cast<long long>(n.n));
  if (status != cudaSuccess) return complain(ctx, status, "guards_0_add could not be launched");
  }
  // rows
  if (n.n <= 327) {
  status = launch(reinterpret_cast<const void*>(guards_3_softmax_guarded), 3, 1, 1, dim3(512, 1, 1), 0, stream,
                  static_cast<const void*>(args->long_v),
                  static_cast<void*>(args->rows),
                  static_cast<int>(n.n));
  if (status != cudaSuccess) return complain(ctx, status, "guards_3_softmax_guarded could not be launched");
  } else {
  status = launch(reinterpret_cast<const void*>(guards_2_softmax), 3, 1, 1, dim3(512, 1, 1), 8192 * least(19, floor_div(25 * n.n + 511, 512)), stream,
                  static_cast<const void*>(args->long_v),
                  static_cast<void*>(args->rows),
                  static_cast<long long>(n.n));
  if (status != cudaSuccess) return complain(ctx, status, "guards_2_softmax could not be launched");
  }
  // product
  if (n.k % 8 == 0) {
  status = launch(reinterpret_cast<const void*>(guards_5_matmul_guarded), 1, 1, 1, dim3(64, 1, 1), 24576, stream,
                  static_cast<const void*>(args->left),
                  static_cast<const void*>(args->right),
                  static_cast<void*>(args->product),
                  static_cast<int>(n.k));
  if (status != cudaSuccess) return complain(ctx, status, "guards_5_matmul_guarded could not be launched");
  } else {
  status = launch(reinterpret_cast<const void*>(guards_4_matmul), 1, 1, 1, dim3(128, 1, 1), 0, stream,
                  static_cast<const void*>(args->left),
                  static_cast<const void*>(args->right),
                  static_cast<void*>(args->product),
                  static_cast<int>(n.k));
  if (status != cudaSuccess) return complain(ctx, status, "guards_4_matmul could not be launched");
  }
  return cudaSuccess;
}

const char* guards_error(const guards_context* ctx) { return ctx ? ctx->error : "no context"; }

void guards_destroy(guards_context* ctx) { delete ctx; }

}  // extern "C"
#endif  // __CUDACC_RTC__
