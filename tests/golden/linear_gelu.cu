// Made by fusec from "linear_gelu" for sm_80. Compiles with NVRTC (no include path) and with nvcc -arch=sm_80.
//
//   linear_gelu_0_linear_mul_gelu
//       reads x, weight, bias 5680 B; writes y 960 B

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

// Dynamic shared memory, with its size set at launch.
extern __shared__ __align__(16) unsigned char dynamic_shared[];

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

// 2^x; results below 2^-126 become 0.
__device__ __forceinline__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// sigmoid of x = 1 / (1 + 2^(-x log2 e)); results below 2^-126 become 0.
__device__ __forceinline__ float reciprocal_from_one(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float sigmoid(float x) {
  return reciprocal_from_one(__fadd_rn(1.0f, exp2_fast(x * -1.44269504f)));
}
__device__ __forceinline__ double sigmoid(double x) { return 1.0 / __dadd_rn(1.0, exp(-x)); }

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

// ---- linear_gelu_0_linear_mul_gelu -----------------------------------------------------------------------
// hidden = linear(x, weight, bias)
// scaled = mul(hidden)
// y = gelu(scaled)
// writes y: float16[20, 24]
// A block makes 16x32, each of its warps 16x16, on tensor cores; 64 of k are a tile, 4 tiles are in shared memory or on the way.
extern "C" __global__ void __launch_bounds__(64, 8)
linear_gelu_0_linear_mul_gelu(const fp16* __restrict__ x, const fp16* __restrict__ weight, const fp16* __restrict__ bias,
         fp16* __restrict__ y) {
  const unsigned stages = shared_address(dynamic_shared);
  const TilePlace tile = tile_in_order<8>((int)blockIdx.x, 2, 1);
  const int row0 = tile.row * 16, column0 = tile.column * 32;
  const int warp = threadIdx.x / 32, warp_lane = threadIdx.x % 32;
  const int warp_row = warp / 2 * 16, warp_column = warp % 2 * 16;
  float sum[1][2][4] = {};
  const int x_unit = threadIdx.x % 8 * 8, x_line = threadIdx.x / 8;
  unsigned x_to = stages + swizzled<8>(x_line, x_unit / 8);
  asm("" : "+r"(x_to));  // or else it is computed anew in the loop
  const fp16* x_from;
  {
    const int row = row0 + x_line;
    x_from = x + (row * 64 + x_unit);
  }
  int x_there[2];
#pragma unroll
  for (int each = 0; each < 2; ++each) x_there[each] = row0 + x_line + each * 8 < 20 ? 16 : 0;
  const int weight_unit = threadIdx.x % 8 * 8, weight_line = threadIdx.x / 8;
  unsigned weight_to = stages + 2048 + swizzled<8>(weight_line, weight_unit / 8);
  asm("" : "+r"(weight_to));  // or else it is computed anew in the loop
  const fp16* weight_from;
  {
    const int column = column0 + weight_line;
    weight_from = weight + (column * 64 + weight_unit);
  }
  int weight_there[4];
#pragma unroll
  for (int each = 0; each < 4; ++each) weight_there[each] = column0 + weight_line + each * 8 < 24 ? 16 : 0;
  const auto fetch = [&](unsigned stage) {
    copy_lines<1024, 1024>(x_to + stage, x_from, x_there);
    x_from += 64;
    copy_lines<1024, 1024>(weight_to + stage, weight_from, weight_there);
    weight_from += 64;
  };
  const int steps = 1;
#pragma unroll
  for (int s = 0; s < 3; ++s) {
    if (s < steps) fetch(s * 6144);
    commit_copies();
  }
  unsigned reading = 0, writing = 18432;  // where stages begin
  const FragmentAddresses<true, true, 8, 1, 4> left_places(stages + 0, warp_row, warp_lane);
  const FragmentAddresses<false, true, 8, 1, 4> right_places(stages + 2048, warp_column, warp_lane);
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
      if (column_2 < 24) {
        const int eight = (unsigned int)column_2 / 8;
        const int first_row = row0 + warp_row + piece * 16;
        const int lines = min((int)16, (int)(20) - first_row);
        if (const int line = staged_row<16>(warp_lane); line < lines) {
          const int row_2 = first_row + line;
          const EightSums<float> sum_v = eight_staged<16>(staged, line, place);
          const Words<4> bias_w = load_words<4>((const uint4*)bias + eight);
          float y_v[8];
#pragma unroll
          for (int e = 0; e < 8; ++e) {
            const float hidden = sum_v.v[e] + fp16_element(bias_w, e);
            const float scaled = hidden * 0.125f;
            y_v[e] = scaled * sigmoid(scaled * (((scaled * scaled) * 0.071354814f) + 1.5957692f));
          }
          store_words(y + (eight * 8 + row_2 * 24), fp16_words(y_v));
        }
      }
    }
    __syncwarp();
  }
}

#ifndef __CUDACC_RTC__  // ---- host part ------------------------------------------------------------
#include <cuda_runtime.h>
#include <stddef.h>
#include <stdio.h>

typedef struct linear_gelu_context linear_gelu_context;
typedef struct {
  void* cublaslt;           // unused: this file calls no cuBLASLt
  void* const* nccl_comms;  // unused: this file calls no NCCL
} linear_gelu_libraries;
typedef struct {
  const void* x;  // float16[20, 64]
  long long x_shape[2];
  const void* weight;  // float16[24, 64], constant
  long long weight_shape[2];
  const void* bias;  // float16[24], constant
  long long bias_shape[1];
  void* y;  // float16[20, 24]
} linear_gelu_args;

struct linear_gelu_context {
  char error[256];
  linear_gelu_libraries libraries;
};

namespace {

struct linear_gelu_sizes {
  int unused;
};


inline cudaError_t complain(linear_gelu_context* ctx, cudaError_t status, const char* text) {
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

inline cudaError_t check_constants(linear_gelu_context* ctx, const linear_gelu_args* args) {
  if (!args) return complain(ctx, cudaErrorInvalidValue, "no arguments");
  if (args->weight_shape[0] != 24 || args->weight_shape[1] != 64)
    return complain(ctx, cudaErrorInvalidValue, "the extents of weight are not float16[24, 64]");
  if (args->bias_shape[0] != 24)
    return complain(ctx, cudaErrorInvalidValue, "the extents of bias are not float16[24]");
  return cudaSuccess;
}

inline cudaError_t solve(linear_gelu_context* ctx, const linear_gelu_args* args, linear_gelu_sizes& n) {
  const cudaError_t status = check_constants(ctx, args);
  if (status != cudaSuccess) return status;
  if (args->x_shape[0] != 20 || args->x_shape[1] != 64)
    return complain(ctx, cudaErrorInvalidValue, "the extents of x are not float16[20, 64]");
  (void)n;
  return cudaSuccess;
}

inline cudaError_t check_pointers(linear_gelu_context* ctx, const linear_gelu_args* args, const linear_gelu_sizes& n) {
  (void)ctx, (void)args, (void)n;
  if (!args->x)
    return complain(ctx, cudaErrorInvalidValue, "x is null");
  if (reinterpret_cast<size_t>(args->x) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "x is not aligned to 16 bytes");
  if (!args->weight)
    return complain(ctx, cudaErrorInvalidValue, "weight is null");
  if (reinterpret_cast<size_t>(args->weight) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "weight is not aligned to 16 bytes");
  if (!args->bias)
    return complain(ctx, cudaErrorInvalidValue, "bias is null");
  if (reinterpret_cast<size_t>(args->bias) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "bias is not aligned to 16 bytes");
  if (!args->y)
    return complain(ctx, cudaErrorInvalidValue, "y is null");
  if (reinterpret_cast<size_t>(args->y) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "y is not aligned to 16 bytes");
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t linear_gelu_create(linear_gelu_context** ctx, const linear_gelu_libraries* libs) {
  if (!ctx) return cudaErrorInvalidValue;
  *ctx = nullptr;
  linear_gelu_context* made = new linear_gelu_context();
  if (libs) made->libraries = *libs;
  cudaError_t status = cudaSuccess;
  if (status == cudaSuccess)
    status = cudaFuncSetAttribute(reinterpret_cast<const void*>(linear_gelu_0_linear_mul_gelu), cudaFuncAttributeMaxDynamicSharedMemorySize, 24576);
  if (status != cudaSuccess) {
    delete made;
    return status;
  }
  *ctx = made;
  return cudaSuccess;
}

// Bytes; (size_t)-1 where the extents contradict one another or the model. Pointers are not looked at.
size_t linear_gelu_workspace_bytes(const linear_gelu_args* args) {
  linear_gelu_sizes n;
  return solve(nullptr, args, n) == cudaSuccess ? size_t(0) : size_t(-1);
}

// The same; of the extents only those of constants are looked at. 0: nothing is prepared.
size_t linear_gelu_prepared_bytes(const linear_gelu_args* args) {
  return check_constants(nullptr, args) == cudaSuccess ? size_t(0) : size_t(-1);
}

cudaError_t linear_gelu_prepare(linear_gelu_context* ctx, const linear_gelu_args* args, void* prepared, cudaStream_t stream) {
  (void)ctx, (void)args, (void)prepared, (void)stream;  // nothing is prepared
  return cudaSuccess;
}

cudaError_t linear_gelu_launch(linear_gelu_context* ctx, const linear_gelu_args* args, const void* prepared, void* workspace,
                     cudaStream_t stream) {
  if (!ctx) return cudaErrorInvalidValue;
  linear_gelu_sizes n;
  cudaError_t status = solve(ctx, args, n);
  if (status == cudaSuccess) status = check_pointers(ctx, args, n);
  if (status != cudaSuccess) return status;
  char* const work = static_cast<char*>(workspace);
  char* const ready = const_cast<char*>(static_cast<const char*>(prepared));
  (void)work, (void)ready, (void)stream;
  // hidden, scaled, y
  status = launch(reinterpret_cast<const void*>(linear_gelu_0_linear_mul_gelu), 2, 1, 1, dim3(64, 1, 1), 24576, stream,
                  static_cast<const void*>(args->x),
                  static_cast<const void*>(args->weight),
                  static_cast<const void*>(args->bias),
                  static_cast<void*>(args->y));
  if (status != cudaSuccess) return complain(ctx, status, "linear_gelu_0_linear_mul_gelu could not be launched");
  return cudaSuccess;
}

const char* linear_gelu_error(const linear_gelu_context* ctx) { return ctx ? ctx->error : "no context"; }

void linear_gelu_destroy(linear_gelu_context* ctx) { delete ctx; }

}  // extern "C"
#endif  // __CUDACC_RTC__
