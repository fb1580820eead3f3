// Made by fusec from "quantized" for sm_80. Compiles with NVRTC (no include path) and with nvcc -arch=sm_80.
//
//   quantized_0_quantize_static_quant_linear_relu
//       reads x, weight, weight_scale 1088 B; writes active 256 B
//   quantized_1_dequantize_dequantize_addcmul
//       reads x, eight_bit, four_bit, eight_bit_scale, block_scale 740 B; writes mixed 512 B

// ---- prelude: only what this file uses ------------------------------------------------------------
namespace {

#if defined(__NVCC__) || defined(__CUDACC_RTC__)
#pragma nv_diag_suppress 177
#endif

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

// Copies piece number `each` of a thread, of kBytes (4, 8 or a multiple of 16), to shared memory asynchronously, or
// zeros if !there; the same thread reads it back. Units of 16 bytes (or kBytes) of neighbouring threads are contiguous.
template <int kBytes, int kThreads>
__device__ __forceinline__ void copy_piece(unsigned to, const void* from, int each, bool there) {
  if constexpr (kBytes >= 16) {
#pragma unroll
    for (int i = 0; i < kBytes / 16; ++i)
      copy_16_bytes(to + ((each * (kBytes / 16) + i) * kThreads + threadIdx.x) * 16, (const char*)from + 16 * i, there);
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                 :
                 : "r"(to + (each * kThreads + threadIdx.x) * kBytes), "l"(__cvta_generic_to_global(from)), "n"(kBytes),
                   "r"(there ? kBytes : 0));
  }
}
template <int kBytes, int kThreads>
__device__ __forceinline__ Words<kBytes / 4> load_copied_piece(const unsigned char* copies, int each) {
  if constexpr (kBytes < 16) {
    return load_words<kBytes / 4>(copies + (each * kThreads + threadIdx.x) * kBytes);
  } else {
    Words<kBytes / 4> piece;
#pragma unroll
    for (int i = 0; i < kBytes / 16; ++i) {
      const auto four = load_words<4>(copies + ((each * (kBytes / 16) + i) * kThreads + threadIdx.x) * 16);
#pragma unroll
      for (int k = 0; k < 4; ++k) piece.w[i * 4 + k] = four.w[k];
    }
    return piece;
  }
}

// Dynamic shared memory, with its size set at launch.
extern __shared__ __align__(16) unsigned char dynamic_shared[];

// Converts two of four float8 e4m3 to packed float16: the last two if `second`. Before sm_89: shifted into place, the
// bits are float16 of 2^-8 times the value; NaN (0x7f + 1 sets the top bit) gets an exponent of all ones.
__device__ __forceinline__ unsigned e4m3_pair(unsigned four, int second) {
  unsigned pair;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  unsigned short low, high;
  asm("mov.b32 {%0, %1}, %2;" : "=h"(low), "=h"(high) : "r"(four));
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"(second ? high : low));
#else
  const unsigned magnitude = four & 0x7f7f7f7fu;
  const unsigned marked = magnitude | ((magnitude + 0x01010101u) & 0x80808080u);
  const unsigned sign = __byte_perm(four, 0u, second ? 0x3424 : 0x1404) & 0x80008000u;
  pair = __byte_perm(marked, 0u, second ? 0x4342 : 0x4140) << 7 | sign;
  asm("fma.rn.f16x2 %0, %0, %1, %2;" : "+r"(pair) : "r"(0x5c005c00u), "r"(0x80008000u));  // * 256 - 0
#endif
  return pair;
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

// Converts float8 e4m3 element e to float. The compiler converts a pair once for both of its elements.
template <int kCount>
__device__ __forceinline__ float e4m3_element(const Words<kCount>& words, int e) {
  return fp16_element(Words<1>{e4m3_pair(words.w[e / 4], e / 2 % 2)}, e % 2);
}

// The bits of |x| in a float format with kMantissa bits of mantissa and exponent bias kBias, rounded to nearest even.
// x is finite. The result may exceed the format's greatest value; the caller checks that.
template <int kMantissa, int kBias>
__device__ __forceinline__ unsigned narrow_magnitude(float x) {
  const unsigned magnitude = __float_as_uint(x) & 0x7fffffffu;
  if ((int)(magnitude >> 23) - 127 < 1 - kBias) {  // a subnormal result counts units in the last place
    const float unit = __uint_as_float((unsigned)(127 + kMantissa - 1 + kBias) << 23);
    return (unsigned)__float2int_rn(__uint_as_float(magnitude) * unit);
  }
  constexpr int kShift = 23 - kMantissa;
  const unsigned rounded = magnitude + ((1u << (kShift - 1)) - 1u) + ((magnitude >> kShift) & 1u);
  return (rounded >> kShift) - ((unsigned)(127 - kBias) << kMantissa);
}

using fp8_e4m3 = unsigned char;
__device__ __forceinline__ float from_fp8_e4m3(unsigned bits) {
  float x;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  asm("{\n.reg .b32 pair;\n.reg .b16 low, high;\ncvt.rn.f16x2.e4m3x2 pair, %1;\nmov.b32 {low, high}, pair;\n"
      "cvt.f32.f16 %0, low;\n}"
      : "=f"(x)
      : "h"((unsigned short)bits));
#else  // the shift copies the sign; NaN comes out as 480
  x = __uint_as_float((unsigned)((int)(bits << 24) >> 4) & 0x87f00000u) * __uint_as_float((127u + 120u) << 23);
  if (fabsf(x) == 480.0f) x = __uint_as_float(0x7fc00000u);
#endif
  return x;
}
__device__ __forceinline__ fp8_e4m3 to_fp8_e4m3(float x) {  // NaN if the result would exceed 448
  const unsigned sign = (__float_as_uint(x) >> 24) & 0x80u;
  if (!(fabsf(x) <= 464.0f)) return (fp8_e4m3)(sign | 0x7fu);
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  unsigned short pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
  return (fp8_e4m3)pair;
#else
  return (fp8_e4m3)(sign | narrow_magnitude<3, 7>(x));
#endif
}

// sum += the four int8 values in a word.
__device__ __forceinline__ void add_codes(int& sum, unsigned four) {
  asm("dp4a.s32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(four), "r"(0x01010101));
}
// Sums int8 fragments along K, for zero points: (x - o) w = x w - o sum w. sums[i]: the lane's part of row (or column)
// 8 i + lane / 4.
template <bool kLeft, int kPieces>
__device__ __forceinline__ void add_fragments(int (&sums)[2 * kPieces], const unsigned (&pieces)[kPieces][4]) {
#pragma unroll
  for (int i = 0; i < kPieces; ++i)
#pragma unroll
    for (int k = 0; k < 4; ++k) add_codes(sums[2 * i + (kLeft ? k % 2 : k / 2)], pieces[i][k]);
}
__device__ __forceinline__ int sum_of_four_lanes(int part) {
  part += __shfl_xor_sync(~0u, part, 1);
  return part + __shfl_xor_sync(~0u, part, 2);
}
// sum -= offset * (sum of the other operand along K, from add_fragments). kOfColumns: the other operand is the right
// one.
template <bool kOfColumns, int kRows, int kColumns, int kSums>
__device__ __forceinline__ void subtract_zero_point(int (&sum)[kRows][kColumns][4], const int (&others)[kSums], int offset,
                                            int lane) {
#pragma unroll
  for (int o = 0; o < kSums; ++o) {
    const int times = offset * sum_of_four_lanes(others[o]);  // of line lane / 4
    const int two[2] = {__shfl_sync(~0u, times, lane % 4 * 8), __shfl_sync(~0u, times, lane % 4 * 8 + 4)};
#pragma unroll
    for (int i = 0; i < (kOfColumns ? kRows : kColumns); ++i)
#pragma unroll
      for (int k = 0; k < (kOfColumns ? 4 : 2); ++k) {
        if constexpr (kOfColumns)
          sum[i][o][k] -= two[k % 2];
        else
          sum[o / 2][i][o % 2 * 2 + k] -= times;
      }
  }
}

using int4_pair = unsigned char;  // two to a byte, low nibble first
__device__ __forceinline__ int from_int4(unsigned nibble) { return (int)(nibble << 28) >> 28; }

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

// d += a * b with mma.m16n8k32: a is 16x32, b is 32x8.
__device__ __forceinline__ void mma_s8(int (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
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

// Stores words to a swizzled tile, from byte `byte` of a line on: whole units of 16 bytes, or half of one.
template <int kUnits, int kCount>
__device__ __forceinline__ void store_units(unsigned char* tile, int line, int byte, const Words<kCount>& words) {
  static_assert(kCount == 2 || kCount % 4 == 0);
  if constexpr (kCount == 2)
    *(uint2*)(tile + swizzled<kUnits>(line, byte / 16) + byte % 16) = make_uint2(words.w[0], words.w[1]);
#pragma unroll
  for (int i = 0; i < kCount / 4; ++i)
    *(uint4*)(tile + swizzled<kUnits>(line, byte / 16 + i)) =
        make_uint4(words.w[4 * i], words.w[4 * i + 1], words.w[4 * i + 2], words.w[4 * i + 3]);
}

// Loads and stores elements that together have kBits, 8 or 16, less than a word.
template <int kBits>
__device__ __forceinline__ Words<1> load_subword(const void* from) {
  if constexpr (kBits == 8) return {*(const unsigned char*)from};
  return {*(const unsigned short*)from};
}
template <int kBits>
__device__ __forceinline__ void store_subword(void* to, const Words<1>& words) {
  if constexpr (kBits == 8)
    *(unsigned char*)to = (unsigned char)words.w[0];
  else
    *(unsigned short*)to = (unsigned short)words.w[0];
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

// ---- quantized_0_quantize_static_quant_linear_relu -------------------------------------------------------
// codes = quantize(x, step, zero)
// product = static_quant_linear(codes, weight, weight_scale, step, zero)
// active = relu(product)
// writes active: float32[4, 16]
// A block makes 16x32, each of its warps 16x16, on tensor cores; 128 of k are a tile, 4 tiles are in shared memory or on the way.
extern "C" __global__ void __launch_bounds__(64, 8)
quantized_0_quantize_static_quant_linear_relu(const float* __restrict__ x, const signed char* __restrict__ weight,
         const float* __restrict__ weight_scale, float* __restrict__ active) {
  const unsigned stages = shared_address(dynamic_shared);
  const TilePlace tile = tile_in_order<8>((int)blockIdx.x, 1, 1);
  const int row0 = tile.row * 16, column0 = tile.column * 32;
  const int warp = threadIdx.x / 32, warp_lane = threadIdx.x % 32;
  const int warp_row = warp / 2 * 16, warp_column = warp % 2 * 16;
  int sum[1][2][4] = {};
  const int x_unit = threadIdx.x % 16 * 8, x_line = threadIdx.x / 16;
  const float* x_from[4];
#pragma unroll
  for (int each = 0; each < 4; ++each) {
    const int row = min((row0 + x_line + each * 4), 3);
    x_from[each] = x + (row * 32 + x_unit);
  }
  const int weight_unit = threadIdx.x % 8 * 16, weight_line = threadIdx.x / 8;
  unsigned weight_to = stages + 8192 + swizzled<8>(weight_line, weight_unit / 16);
  asm("" : "+r"(weight_to));  // or else it is computed anew in the loop
  const signed char* weight_from;
  {
    const int column = column0 + weight_line;
    weight_from = weight + (column * 32 + weight_unit);
  }
  int weight_there[4];
#pragma unroll
  for (int each = 0; each < 4; ++each) weight_there[each] = column0 + weight_line + each * 8 < 16 ? 16 : 0;
  int next_k = 0;
  const auto fetch = [&](unsigned stage) {
#pragma unroll
    for (int each = 0; each < 4; ++each) {
      copy_piece<32, 64>(stages + stage + 0, x_from[each], each, next_k + x_unit < 32);
      x_from[each] += 128;
    }
#pragma unroll
    for (int each = 0; each < 4; ++each)
      if (next_k + weight_unit >= 32) weight_there[each] = 0;
    copy_lines<1024, 256>(weight_to + stage, weight_from, weight_there);
    weight_from += 128;
    next_k += 128;
  };
  const auto make_x = [&](int each, int step, int stage_2) {
    if (step * 128 + x_unit < 32) {
      const Words<8> x_w = load_copied_piece<32, 64>(dynamic_shared + stage_2 + 0, each);
      Words<2> made = {};
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const float t = nan_max(rintf(__uint_as_float(element<32>(x_w, e)) / 0.0625f) + 3.0f, -128.0f);
        put_element<8>(made, e, (unsigned)((int)nan_min(t, 127.0f)));
      }
      store_units<8>(dynamic_shared + 49152 + step % 2 * 2048, x_line + each * 4, x_unit, made);
    } else {
      store_units<8>(dynamic_shared + 49152 + step % 2 * 2048, x_line + each * 4, x_unit, Words<2>{});
    }
  };
  const int steps = 1;
#pragma unroll
  for (int s = 0; s < 3; ++s) {
    if (s < steps) fetch(s * 12288);
    commit_copies();
  }
  unsigned reading = 0, writing = 36864;  // where stages begin
  const FragmentAddresses<true, true, 8, 1, 4> left_places(stages + 49152, warp_row, warp_lane);
  const FragmentAddresses<false, true, 8, 1, 4> right_places(stages + 8192, warp_column, warp_lane);
  unsigned left[2][1][4], right[2][1][4];
  const auto load_2 = [&](int buffer, unsigned stage, int place, int slice) {
    left_places.load(left[buffer], place * 2048, slice);
    right_places.load(right[buffer], stage, slice);
  };
  int codes[2] = {};
  wait_for_groups<2>();
  if (steps > 0) {
#pragma unroll 2
    for (int each = 0; each < 4; ++each) make_x(each, 0, 0);
  }
  __syncthreads();
  load_2(0, 0, 0, 0);
  for (int step = 0; step < steps; ++step) {
#pragma unroll
    for (int slice = 0; slice < 4; ++slice) {
      if (slice == 3) {
        __syncthreads();
        writing = reading, reading = reading == 36864 ? 0 : reading + 12288;
      }
      if (slice < 3 || step + 1 < steps) load_2((slice + 1) % 2, reading, (step + (slice == 3)) % 2, (slice + 1) % 4);
      if (slice == 0) {
        if (step + 3 < steps) fetch(writing);
        commit_copies();
      }
      multiply_fragments<mma_s8>(sum, left[slice % 2], right[slice % 2]);
      add_fragments<false>(codes, right[slice % 2]);
      if (slice == 0) {
        wait_for_groups<2>();
        if (step + 1 < steps) {
          const int stage_3 = reading == 36864 ? 0 : reading + 12288;
#pragma unroll
          for (int each = 0; each < 4; ++each) make_x(each, step + 1, stage_3);
        }
      }
    }
  }
  subtract_zero_point<true>(sum, codes, 3, warp_lane);
  __syncthreads();  // the tiles' memory is free
  int* const staged = (int*)dynamic_shared + warp * 384;
#pragma unroll
  for (int piece = 0; piece < 1; piece += 1) {
    stage_sums<true>(staged, sum[0], warp_lane);
    __syncwarp();
    {
      const int place = warp_lane % 2 * 8;
      const int column_2 = column0 + warp_column + place;
      if (column_2 < 16) {
        const int eight = (unsigned int)column_2 / 8;
        const int first_row = row0 + warp_row + piece * 16;
        const int lines = min((int)16, (int)(4) - first_row);
        if (const int line = staged_row<16>(warp_lane); line < lines) {
          const int row_2 = first_row + line;
          const EightSums<int> sum_v = eight_staged<16>(staged, line, place);
          const Words<8> weight_scale_w = load_words<8>(weight_scale + (eight * 8));
          Words<8> active_w = {};
#pragma unroll
          for (int e_2 = 0; e_2 < 8; ++e_2) {
            const float product = (((float)sum_v.v[e_2]) * 0.0625f) * __uint_as_float(element<32>(weight_scale_w, e_2));
            put_element<32>(active_w, e_2, __float_as_uint((product < 0.0f) ? 0.0f : product));
          }
          store_words(active + (eight * 8 + row_2 * 16), active_w);
        }
      }
    }
    __syncwarp();
  }
}

// ---- quantized_1_dequantize_dequantize_addcmul -----------------------------------------------------------
// from_eight = dequantize(eight_bit, eight_bit_scale)
// from_four = dequantize(four_bit, block_scale)
// mixed = addcmul(x, from_eight, from_four)
// writes mixed: float32[4, 32]
// A thread makes 4 neighbouring elements.
extern "C" __global__ void __launch_bounds__(128)
quantized_1_dequantize_dequantize_addcmul(const float* __restrict__ x, const fp8_e4m3* __restrict__ eight_bit,
         const int4_pair* __restrict__ four_bit, const float* __restrict__ eight_bit_scale,
         const float* __restrict__ block_scale, float* __restrict__ mixed) {
  const int t = blockIdx.x * 128 + threadIdx.x;
  if (t >= 32) return;
  const Words<4> x_w = load_words<4>((const uint4*)x + t);
  const Words<1> eight_bit_w = load_words<1>(eight_bit + (t * 4));
  const Words<1> four_bit_w = load_subword<16>(four_bit + (t * 2));
  Words<4> mixed_w = {};
  const float eight_bit_scale_v = eight_bit_scale[0];
  const float block_scale_v = block_scale[(t / 4)];
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    const float from_eight = e4m3_element(eight_bit_w, e) * eight_bit_scale_v;
    const float from_four = ((float)from_int4(element<4>(four_bit_w, e))) * block_scale_v;
    put_element<32>(mixed_w, e, __float_as_uint(__uint_as_float(element<32>(x_w, e)) + (from_eight * from_four)));
  }
  store_words((uint4*)mixed + t, mixed_w);
}

#ifndef __CUDACC_RTC__  // ---- host part ------------------------------------------------------------
#include <cuda_runtime.h>
#include <stddef.h>
#include <stdio.h>

typedef struct quantized_context quantized_context;
typedef struct {
  void* cublaslt;           // unused: this file calls no cuBLASLt
  void* const* nccl_comms;  // unused: this file calls no NCCL
} quantized_libraries;
typedef struct {
  const void* x;  // float32[4, 32]
  long long x_shape[2];
  const void* weight;  // int8[16, 32], constant
  long long weight_shape[2];
  const void* weight_scale;  // float32[16], constant
  long long weight_scale_shape[1];
  const void* eight_bit;  // float8_e4m3fn[4, 32], constant
  long long eight_bit_shape[2];
  const void* eight_bit_scale;  // float32[], constant
  const void* four_bit;  // int4[4, 32], constant
  long long four_bit_shape[2];
  const void* block_scale;  // float32[4, 2], constant
  long long block_scale_shape[2];
  void* active;  // float32[4, 16]
  void* mixed;  // float32[4, 32]
} quantized_args;

struct quantized_context {
  char error[256];
  quantized_libraries libraries;
};

namespace {

struct quantized_sizes {
  int unused;
};


inline cudaError_t complain(quantized_context* ctx, cudaError_t status, const char* text) {
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

inline cudaError_t check_constants(quantized_context* ctx, const quantized_args* args) {
  if (!args) return complain(ctx, cudaErrorInvalidValue, "no arguments");
  if (args->weight_shape[0] != 16 || args->weight_shape[1] != 32)
    return complain(ctx, cudaErrorInvalidValue, "the extents of weight are not int8[16, 32]");
  if (args->weight_scale_shape[0] != 16)
    return complain(ctx, cudaErrorInvalidValue, "the extents of weight_scale are not float32[16]");
  if (args->eight_bit_shape[0] != 4 || args->eight_bit_shape[1] != 32)
    return complain(ctx, cudaErrorInvalidValue, "the extents of eight_bit are not float8_e4m3fn[4, 32]");
  if (args->four_bit_shape[0] != 4 || args->four_bit_shape[1] != 32)
    return complain(ctx, cudaErrorInvalidValue, "the extents of four_bit are not int4[4, 32]");
  if (args->block_scale_shape[0] != 4 || args->block_scale_shape[1] != 2)
    return complain(ctx, cudaErrorInvalidValue, "the extents of block_scale are not float32[4, 2]");
  return cudaSuccess;
}

inline cudaError_t solve(quantized_context* ctx, const quantized_args* args, quantized_sizes& n) {
  const cudaError_t status = check_constants(ctx, args);
  if (status != cudaSuccess) return status;
  if (args->x_shape[0] != 4 || args->x_shape[1] != 32)
    return complain(ctx, cudaErrorInvalidValue, "the extents of x are not float32[4, 32]");
  (void)n;
  return cudaSuccess;
}

inline cudaError_t check_pointers(quantized_context* ctx, const quantized_args* args, const quantized_sizes& n) {
  (void)ctx, (void)args, (void)n;
  if (!args->x)
    return complain(ctx, cudaErrorInvalidValue, "x is null");
  if (reinterpret_cast<size_t>(args->x) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "x is not aligned to 16 bytes");
  if (!args->weight)
    return complain(ctx, cudaErrorInvalidValue, "weight is null");
  if (reinterpret_cast<size_t>(args->weight) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "weight is not aligned to 16 bytes");
  if (!args->weight_scale)
    return complain(ctx, cudaErrorInvalidValue, "weight_scale is null");
  if (reinterpret_cast<size_t>(args->weight_scale) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "weight_scale is not aligned to 16 bytes");
  if (!args->eight_bit)
    return complain(ctx, cudaErrorInvalidValue, "eight_bit is null");
  if (reinterpret_cast<size_t>(args->eight_bit) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "eight_bit is not aligned to 16 bytes");
  if (!args->eight_bit_scale)
    return complain(ctx, cudaErrorInvalidValue, "eight_bit_scale is null");
  if (reinterpret_cast<size_t>(args->eight_bit_scale) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "eight_bit_scale is not aligned to 16 bytes");
  if (!args->four_bit)
    return complain(ctx, cudaErrorInvalidValue, "four_bit is null");
  if (reinterpret_cast<size_t>(args->four_bit) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "four_bit is not aligned to 16 bytes");
  if (!args->block_scale)
    return complain(ctx, cudaErrorInvalidValue, "block_scale is null");
  if (reinterpret_cast<size_t>(args->block_scale) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "block_scale is not aligned to 16 bytes");
  if (!args->active)
    return complain(ctx, cudaErrorInvalidValue, "active is null");
  if (reinterpret_cast<size_t>(args->active) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "active is not aligned to 16 bytes");
  if (!args->mixed)
    return complain(ctx, cudaErrorInvalidValue, "mixed is null");
  if (reinterpret_cast<size_t>(args->mixed) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "mixed is not aligned to 16 bytes");
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t quantized_create(quantized_context** ctx, const quantized_libraries* libs) {
  if (!ctx) return cudaErrorInvalidValue;
  *ctx = nullptr;
  quantized_context* made = new quantized_context();
  if (libs) made->libraries = *libs;
  cudaError_t status = cudaSuccess;
  if (status == cudaSuccess)
    status = cudaFuncSetAttribute(reinterpret_cast<const void*>(quantized_0_quantize_static_quant_linear_relu), cudaFuncAttributeMaxDynamicSharedMemorySize, 53248);
  if (status != cudaSuccess) {
    delete made;
    return status;
  }
  *ctx = made;
  return cudaSuccess;
}

// Bytes; (size_t)-1 where the extents contradict one another or the model. Pointers are not looked at.
size_t quantized_workspace_bytes(const quantized_args* args) {
  quantized_sizes n;
  return solve(nullptr, args, n) == cudaSuccess ? size_t(0) : size_t(-1);
}

// The same; of the extents only those of constants are looked at. 0: nothing is prepared.
size_t quantized_prepared_bytes(const quantized_args* args) {
  return check_constants(nullptr, args) == cudaSuccess ? size_t(0) : size_t(-1);
}

cudaError_t quantized_prepare(quantized_context* ctx, const quantized_args* args, void* prepared, cudaStream_t stream) {
  (void)ctx, (void)args, (void)prepared, (void)stream;  // nothing is prepared
  return cudaSuccess;
}

cudaError_t quantized_launch(quantized_context* ctx, const quantized_args* args, const void* prepared, void* workspace,
                     cudaStream_t stream) {
  if (!ctx) return cudaErrorInvalidValue;
  quantized_sizes n;
  cudaError_t status = solve(ctx, args, n);
  if (status == cudaSuccess) status = check_pointers(ctx, args, n);
  if (status != cudaSuccess) return status;
  char* const work = static_cast<char*>(workspace);
  char* const ready = const_cast<char*>(static_cast<const char*>(prepared));
  (void)work, (void)ready, (void)stream;
  // codes, product, active
  status = launch(reinterpret_cast<const void*>(quantized_0_quantize_static_quant_linear_relu), 1, 1, 1, dim3(64, 1, 1), 53248, stream,
                  static_cast<const void*>(args->x),
                  static_cast<const void*>(args->weight),
                  static_cast<const void*>(args->weight_scale),
                  static_cast<void*>(args->active));
  if (status != cudaSuccess) return complain(ctx, status, "quantized_0_quantize_static_quant_linear_relu could not be launched");
  // from_eight, from_four, mixed
  status = launch(reinterpret_cast<const void*>(quantized_1_dequantize_dequantize_addcmul), 1, 1, 1, dim3(128, 1, 1), 0, stream,
                  static_cast<const void*>(args->x),
                  static_cast<const void*>(args->eight_bit),
                  static_cast<const void*>(args->four_bit),
                  static_cast<const void*>(args->eight_bit_scale),
                  static_cast<const void*>(args->block_scale),
                  static_cast<void*>(args->mixed));
  if (status != cudaSuccess) return complain(ctx, status, "quantized_1_dequantize_dequantize_addcmul could not be launched");
  return cudaSuccess;
}

const char* quantized_error(const quantized_context* ctx) { return ctx ? ctx->error : "no context"; }

void quantized_destroy(quantized_context* ctx) { delete ctx; }

}  // extern "C"
#endif  // __CUDACC_RTC__
