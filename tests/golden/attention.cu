// Made by fusec from "attention" for sm_80. Compiles with NVRTC (no include path) and with nvcc -arch=sm_80.
//
//   attention_0_mul_scaled_dot_product_atten_transpose_reshape
//       reads q, k, v 3328 B; writes y 768 B

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

// Returns the value, which the compiler then cannot recompute at each use.
template <typename Integer>
__device__ __forceinline__ Integer kept(Integer value) {
  if constexpr (sizeof(Integer) == 8) {
    asm("" : "+l"(value));
  } else {
    asm("" : "+r"(value));
  }
  return value;
}

// Divides a tile of kLines lines of kUnits units of kBytes among kWarps warps. A warp copies kTogether units of kHigh
// lines at a time, all warps kWide units of kDown * kHigh lines. There are no bank conflicts if lines in shared memory
// are an odd multiple of 16 bytes apart. `line`, `unit`: the thread's first place.
template <int kWarps, int kLines, int kUnits, int kBytes = 16>
struct Lines {
  enum {
    kTogether = kBytes < 16 ? 64 / kBytes : kUnits % 8 == 0 ? 8 : kUnits % 4 == 0 ? 4 : 2,
    kHigh = 32 / kTogether,
    kDown = kLines / kHigh < kWarps ? kLines / kHigh : kWarps,
    kWide = kWarps / kDown * kTogether
  };
  int line, unit;
  __device__ __forceinline__ explicit Lines(int thread) {
    const int lane = thread % 32, warp = thread / 32;
    const bool by_lines = kBytes < 16 || kTogether == 8;
    unit = warp / kDown * kTogether + (by_lines ? lane % kTogether : lane / 8 % kTogether);
    line = warp % kDown * kHigh + (by_lines ? lane / kTogether : lane % 8 + lane / (8 * kTogether) * 8);
    if (kBytes < 16 && kHigh * kDown % 8 == 0) line = line / 8 * 8 + line / 2 % 4 + line % 2 * 4;
  }
  // Copies the thread's units of a full tile; `to`, `from`: its first place. Lines are kStride bytes apart in shared
  // memory, `step` elements in global memory.
  template <int kStride, int kPiece = 0, class T>
  __device__ __forceinline__ void copy(unsigned to, const T* from, long long step) const {
    constexpr int kPieces = (kUnits + kWide - 1) / kWide;  // the thread's units in a line
    constexpr int kLine = kPiece / kPieces * kDown * kHigh, kUnit = kPiece % kPieces * kWide;
    if constexpr (kLine < kLines) {
      if (kUnit + kWide <= kUnits || unit + kUnit < kUnits) {
        const unsigned long long there =
            __cvta_generic_to_global(from + kLine * step + kUnit * (kBytes / (int)sizeof(T)));
        if constexpr (kBytes == 16)
          asm volatile("cp.async.cg.shared.global [%0+%1], [%2], 16;"
                       :
                       : "r"(to), "n"(kLine * kStride + kUnit * kBytes), "l"(there));
        else
          asm volatile("cp.async.ca.shared.global [%0+%1], [%2], %3;"
                       :
                       : "r"(to), "n"(kLine * kStride + kUnit * kBytes), "l"(there), "n"(kBytes));
      }
      copy<kStride, kPiece + 1>(to, from, step);
    }
  }
  // Copies the thread's units of a partial tile: lines from number `there` on become 0.
  template <int kStride, class T>
  __device__ __forceinline__ void copy_some(unsigned to, const T* from, long long step, int there) const {
#pragma unroll 1
    for (int l = line; l < kLines + line; l += kDown * kHigh) {
#pragma unroll
      for (int u = 0; u < kUnits; u += kWide) {
        if (u + kWide > kUnits && u + unit >= kUnits) continue;
        const unsigned long long at = __cvta_generic_to_global(from + u * (kBytes / (int)sizeof(T)));
        if constexpr (kBytes == 16)
          asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                       :
                       : "r"(to + u * kBytes), "l"(at), "r"(l < there ? kBytes : 0));
        else
          asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                       :
                       : "r"(to + u * kBytes), "l"(at), "n"(kBytes), "r"(l < there ? kBytes : 0));
      }
      to += kDown * kHigh * kStride, from += kDown * kHigh * step;
    }
  }
};

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

// Masks a row (lane / 4 + 8 * half of the slab): scores of keys outside [first, end), counted from the lane's first
// key, become -inf.
template <class T, int kKeys>
__device__ __forceinline__ void mask_keys(float (&score)[kKeys][4], int half, T first, T end) {
#pragma unroll
  for (int n = 0; n < 2 * kKeys; ++n)
    if (n / 2 * 8 + n % 2 < first || n / 2 * 8 + n % 2 >= end)
      score[n / 2][2 * half + n % 2] = __uint_as_float(0xff800000u);
}
template <class T, int kKeys>
__device__ __forceinline__ void mask_keys(float (&score)[kKeys][4], int half, T end) {
#pragma unroll
  for (int n = 0; n < 2 * kKeys; ++n)
    if (n / 2 * 8 + n % 2 >= end) score[n / 2][2 * half + n % 2] = __uint_as_float(0xff800000u);
}

// 2^x; results below 2^-126 become 0.
__device__ __forceinline__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// The shift of a row's scores in the softmax: their maximum, or 0 if the row has no key yet (maximum -inf).
__device__ __forceinline__ float shift_of(float greatest) {
  return greatest == __uint_as_float(0xff800000u) ? 0.0f : greatest;
}
// Softmax weight 2^((score - greatest) * log2_scale).
__device__ __forceinline__ float weight_of(float score, float greatest, float log2_scale) {
  return exp2_fast((score - shift_of(greatest)) * log2_scale);
}
// Online softmax of one more tile of scores, which are mma accumulators of 16 * kSlabs rows by 8 * kKeys keys. Scores
// become weights 2^((score - greatest) * log2_scale), where log2_scale = scale * log2(e); `total` gets the lane's part
// of their sum. When the row maximum `greatest` grows, `shrink(by)` multiplies row r of the caller's accumulators by
// by[r]. To save that, it grows only if a weight would exceed 2^8, unless kExact. kLarge: score * log2_scale may
// overflow (masks).
template <bool kLarge, bool kExact, int kSlabs, int kKeys, class Shrink>
__device__ __forceinline__ void online_softmax_tile(float (&score)[kSlabs][kKeys][4], float (&greatest)[2 * kSlabs],
                                             float (&total)[2 * kSlabs], float log2_scale, const Shrink& shrink) {
  constexpr float kMuch = 8;  // as a power of 2: weights below 256 are as precise as those below 1
  float now[2 * kSlabs];
  bool grows = false;
#pragma unroll
  for (int r = 0; r < 2 * kSlabs; ++r) {
    now[r] = greatest[r];
#pragma unroll
    for (int n = 0; n < 2 * kKeys; ++n) now[r] = fmaxf(now[r], score[r / 2][n / 2][2 * (r % 2) + n % 2]);
    grows |= kExact ? now[r] > greatest[r] : (now[r] - greatest[r]) * log2_scale > kMuch;
  }
  if (__any_sync(0xffffffffu, grows)) {
    float by[2 * kSlabs];
#pragma unroll
    for (int r = 0; r < 2 * kSlabs; ++r) {
      now[r] = fmaxf(now[r], __shfl_xor_sync(0xffffffffu, now[r], 1));
      now[r] = fmaxf(now[r], __shfl_xor_sync(0xffffffffu, now[r], 2));
      by[r] = exp2_fast((greatest[r] - shift_of(now[r])) * log2_scale);
      greatest[r] = now[r];
      total[r] *= by[r];
    }
    shrink(by);
  }
#pragma unroll
  for (int r = 0; r < 2 * kSlabs; ++r) {
    const float shift = shift_of(greatest[r]), less = -shift * log2_scale;
#pragma unroll
    for (int n = 0; n < 2 * kKeys; ++n) {
      float& s = score[r / 2][n / 2][2 * (r % 2) + n % 2];
      s = exp2_fast(kLarge ? (s - shift) * log2_scale : fmaf(s, log2_scale, less));
      total[r] += s;
    }
  }
}

// Merges the results of kWarps warps that attended to different keys of the same rows into those of warp 0. `exchange`
// is shared memory for the results of the others, which it may overwrite.
template <int kWarps, int kSlabs, int kEights>
__device__ __forceinline__ void merge_key_warps(float (&sum)[kSlabs][kEights][4], float (&greatest)[2 * kSlabs],
                                                float (&total)[2 * kSlabs], float* exchange, float log2_scale) {
  constexpr int kSums = 4 * kSlabs * kEights, kOfWarp = 32 * (kSums + 4 * kSlabs);
  const int warp = threadIdx.x / 32;
  float* from = exchange + threadIdx.x % 32;
  __syncthreads();  // nobody needs keys and values any more
  if (warp > 0) {
    float* to = from + (warp - 1) * kOfWarp;
#pragma unroll
    for (int i = 0; i < kSums; ++i) to[i * 32] = sum[i / (4 * kEights)][i / 4 % kEights][i % 4];
#pragma unroll
    for (int r = 0; r < 2 * kSlabs; ++r) to[(kSums + 2 * r) * 32] = greatest[r], to[(kSums + 2 * r + 1) * 32] = total[r];
  }
  __syncthreads();
  if (warp > 0) return;
#pragma unroll 1
  for (int other = 1; other < kWarps; ++other, from += kOfWarp) {
    float by[2 * kSlabs], more[2 * kSlabs];
#pragma unroll
    for (int r = 0; r < 2 * kSlabs; ++r) {
      const float theirs = from[(kSums + 2 * r) * 32], now = fmaxf(greatest[r], theirs);
      by[r] = weight_of(greatest[r], now, log2_scale);
      more[r] = weight_of(theirs, now, log2_scale);
      greatest[r] = now;
      total[r] = total[r] * by[r] + from[(kSums + 2 * r + 1) * 32] * more[r];
    }
#pragma unroll
    for (int i = 0; i < kSums; ++i) {
      float& s = sum[i / (4 * kEights)][i / 4 % kEights][i % 4];
      const int r = i / (4 * kEights) * 2 + i % 4 / 2;
      s = s * by[r] + from[i * 32] * more[r];
    }
  }
}

__device__ __forceinline__ void mma_fp16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
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

}  // namespace

// ---- attention_0_mul_scaled_dot_product_atten_transpose_reshape ------------------------------------------
// turned = mul(q)
// mixed = scaled_dot_product_attention(turned, k, v)
// rows = transpose(mixed)
// y = reshape(rows)
// writes y: float16[1, 12, 32]
// score[m, n] = sum of query[m, e] * key[n, e]; weight[m, n] = exp(score[m, n] - max of score[m])
// result[m, d] = sum over n of weight[m, n] * value[n, d], over the sum of weight[m]
// A block takes 16 rows; 32 keys at a time go through shared memory, their softmax is kept as it goes, products on tensor cores.
extern "C" __global__ void __launch_bounds__(64, 1)
attention_0_mul_scaled_dot_product_atten_transpose_reshape(const fp16* __restrict__ q, const fp16* __restrict__ k, const fp16* __restrict__ v,
         fp16* __restrict__ y) {
  __shared__ __align__(16) unsigned short tiles[6144];
  unsigned short* const key_tile = tiles;
  unsigned short* const value_tile = tiles + 768;
  const int warp = threadIdx.x / 32, warp_lane = threadIdx.x % 32;
  const int tile = blockIdx.x;
  const int row0 = 0;
  const int batch = tile;
  const int warp_row = row0;
  const int my_row = warp_row + warp_lane / 4;  // and 8 further down
  const int my_column = warp_lane % 4 * 2;
  for (unsigned p = threadIdx.x; p < 32; p += 64) {
    const int line = p / 2, eight = p % 2;
    const int at = row0 + line;
    Words<4> made = {};
    if (at < 12) {
      const Words<4> q_w = load_words<4>(q + (eight * 8 + at * 16 + batch * 192));
      float values[8];
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        values[e] = fp16_element(q_w, e) * 0.5f;
      }
      made = fp16_words(values);
    }
    store_words(key_tile + line * 24 + eight * 8, made);
  }
  const int lane_row = warp_lane / 16 * 8 + warp_lane % 8, lane_place = warp_lane / 8 % 2 * 8;
  const unsigned query_rows = kept(shared_address(key_tile + (lane_row) * 24 + lane_place));
  const unsigned key_rows = kept(shared_address(key_tile + (warp * 16 + lane_row) * 24 + lane_place));
  const unsigned value_rows = kept(shared_address(value_tile + (warp * 16 + lane_row) * 24 + lane_place));
  __syncthreads();  // queries are there
  unsigned query[1][1][4];
#pragma unroll
  for (int e = 0; e < 1; ++e) load_pieces<768>(query[e], query_rows + e * 32);
  float greatest[2] = {__uint_as_float(0xff800000u), __uint_as_float(0xff800000u)}, total[2] = {};
  asm volatile(
      ".reg .f32 sum<8>;"
      :);
  asm volatile(
      "mov.f32 sum0, 0f00000000; mov.f32 sum1, 0f00000000; mov.f32 sum2, 0f00000000;\n"
      "mov.f32 sum3, 0f00000000; mov.f32 sum4, 0f00000000; mov.f32 sum5, 0f00000000;\n"
      "mov.f32 sum6, 0f00000000; mov.f32 sum7, 0f00000000;"
      :);
  const int last_row = row0 + 15 < 12 ? row0 + 15 : 12 - 1;
  const int keys_end = (last_row + 1);
  const int all_rows_to = (row0 + 1);
  const Lines<2, 32, 2> key_tile_lines(threadIdx.x);
  const unsigned key_tile_to = shared_address(key_tile + key_tile_lines.line * 24 + key_tile_lines.unit * 8);
  const int key_tile_at = batch * 320 + key_tile_lines.unit * 8 + key_tile_lines.line * 16;
  __syncthreads();
  unsigned stage = 0;  // in bytes
#pragma unroll 1
  for (int next_key0 = 0; stage < 9216; next_key0 += 32, stage += 3072) {
    if (next_key0 < keys_end) {
      if (next_key0 + 32 <= 20) {
        key_tile_lines.copy<48>(key_tile_to + stage, k + (key_tile_at + (next_key0) * 16), 16);
      } else {
        key_tile_lines.copy_some<48>(key_tile_to + stage, k + (key_tile_at + (next_key0) * 16), 16, 20 - (next_key0));
      }
      if (next_key0 + 32 <= 20) {
        key_tile_lines.copy<48>(key_tile_to + 1536 + stage, v + (key_tile_at + (next_key0) * 16), 16);
      } else {
        key_tile_lines.copy_some<48>(key_tile_to + 1536 + stage, v + (key_tile_at + (next_key0) * 16), 16, 20 - (next_key0));
      }
    }
    commit_copies();
  }
  stage = 0;
  for (int key0 = 0; key0 < keys_end; key0 += 32) {
    wait_for_groups<2>();
    __syncthreads();  // keys and values are there, those before are used up
    const unsigned free_stage = stage == 0 ? 9216 : stage - 3072;
    if (key0 + 96 < keys_end) {
      if (key0 + 96 + 32 <= 20) {
        key_tile_lines.copy<48>(key_tile_to + free_stage, k + (key_tile_at + (key0 + 96) * 16), 16);
      } else {
        key_tile_lines.copy_some<48>(key_tile_to + free_stage, k + (key_tile_at + (key0 + 96) * 16), 16, 20 - (key0 + 96));
      }
      if (key0 + 96 + 32 <= 20) {
        key_tile_lines.copy<48>(key_tile_to + 1536 + free_stage, v + (key_tile_at + (key0 + 96) * 16), 16);
      } else {
        key_tile_lines.copy_some<48>(key_tile_to + 1536 + free_stage, v + (key_tile_at + (key0 + 96) * 16), 16, 20 - (key0 + 96));
      }
    }
    commit_copies();
    const int warp_key0 = key0 + warp * 16;
    const unsigned stage_key_rows = key_rows + stage;
    const unsigned stage_value_rows = value_rows + stage;
    float score[1][2][4] = {};
#pragma unroll
    for (int e = 0; e < 1; ++e) {
      unsigned b[1][4];
      load_pieces<768>(b, stage_key_rows + e * 32);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int n = i / 1, s = i % 1;
        mma_fp16(score[s][n], {query[e][s][0], query[e][s][2], query[e][s][1], query[e][s][3]}, {b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]});
      }
    }
    if (warp_key0 + 16 > all_rows_to) {
      const int lane_key = warp_key0 + my_column;
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int row = my_row + r * 8;
        mask_keys<int>(score[r / 2], r % 2, (row + 1) - lane_key);
      }
    }
    online_softmax_tile<false, false>(score, greatest, total, 0.36067376f, [&](const float (&by)[2]) {
      asm volatile(
          "mul.f32 sum0, sum0, %0; mul.f32 sum1, sum1, %0; mul.f32 sum4, sum4, %0; mul.f32 sum5, sum5, %0;\n"
          "mul.f32 sum2, sum2, %1; mul.f32 sum3, sum3, %1; mul.f32 sum6, sum6, %1; mul.f32 sum7, sum7, %1;"
          :
          : "f"(by[0]), "f"(by[1]));
    });
#pragma unroll
    for (int k = 0; k < 2; k += 2) {
      unsigned weight[1][4];
#pragma unroll
      for (int w = 0; w < 4; ++w)
        weight[w / 4][w % 4] = pack_fp16(score[w / 4][k + w % 4 / 2][w % 2 * 2], score[w / 4][k + w % 4 / 2][w % 2 * 2 + 1]);
      asm volatile(
          "{.reg .b32 b<4>; ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {b0,b1,b2,b3}, [%4+0];\n"
          "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {sum0,sum1,sum2,sum3}, {%0,%1,%2,%3}, {b0,b2}, {sum0,sum1,sum2,sum3};\n"
          "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {sum4,sum5,sum6,sum7}, {%0,%1,%2,%3}, {b1,b3}, {sum4,sum5,sum6,sum7};}"
          :
          : "r"(weight[0][0]), "r"(weight[0][1]), "r"(weight[0][2]), "r"(weight[0][3]),
          "r"(stage_value_rows + k * 384));
    }
    stage = stage == 9216 ? 0 : stage + 3072;
  }
  float sum[1][2][4];
  asm volatile(
      "mov.f32 %0, sum0; mov.f32 %1, sum1; mov.f32 %2, sum2; mov.f32 %3, sum3; mov.f32 %4, sum4;\n"
      "mov.f32 %5, sum5; mov.f32 %6, sum6; mov.f32 %7, sum7;"
      : "=f"(sum[0][0][0]), "=f"(sum[0][0][1]), "=f"(sum[0][0][2]), "=f"(sum[0][0][3]),
      "=f"(sum[0][1][0]), "=f"(sum[0][1][1]), "=f"(sum[0][1][2]), "=f"(sum[0][1][3]));
  merge_key_warps<2>(sum, greatest, total, (float*)key_tile, 0.36067376f);
  if (warp == 0) {
    float row_scale[2];
#pragma unroll
    for (int r_2 = 0; r_2 < 2; ++r_2) {
      total[r_2] += __shfl_xor_sync(0xffffffffu, total[r_2], 1);
      total[r_2] += __shfl_xor_sync(0xffffffffu, total[r_2], 2);
      if (greatest[r_2] == __uint_as_float(0xff800000u)) total[r_2] = __uint_as_float(0x7fc00000u);
      const int row_2 = my_row + r_2 * 8;
      row_scale[r_2] = (1.0f / (total[r_2]));
    }
    __syncwarp();  // nobody needs keys and values any more
    fp16* const my_result = (fp16*)key_tile + warp * 384;
#pragma unroll
    for (int r_3 = 0; r_3 < 2; ++r_3) {
      const int row_3 = my_row + r_3 * 8;
      if (row_3 >= 12) continue;
#pragma unroll
      for (int m = 0; m < 4; m += 2) {
        const int column = my_column + m / 2 * 8 + m % 2;
        *(unsigned*)(my_result + (warp_lane / 4 + r_3 * 8) * 24 + column) = pack_fp16((sum[r_3 / 2][m / 2][2 * (r_3 % 2) + m % 2] * row_scale[r_3]), (sum[r_3 / 2][(m + 1) / 2][2 * (r_3 % 2) + (m + 1) % 2] * row_scale[r_3]));
      }
    }
    __syncwarp();
    using Result = Lines<1, 16, 2>;
    const Result lines(warp_lane);
#pragma unroll
    for (int line_2 = lines.line; line_2 < 16; line_2 += Result::kHigh) {
      const int row_4 = warp_row + line_2;
      if (row_4 >= 12) continue;
#pragma unroll
      for (int unit = lines.unit; unit < 2; unit += Result::kWide) {
        *(uint4*)(y + row_4 * 32 + batch * 16 + (unit * 8)) = *(const uint4*)(my_result + line_2 * 24 + unit * 8);
      }
    }
  }
}

#ifndef __CUDACC_RTC__  // ---- host part ------------------------------------------------------------
#include <cuda_runtime.h>
#include <stddef.h>
#include <stdio.h>

typedef struct attention_context attention_context;
typedef struct {
  void* cublaslt;           // unused: this file calls no cuBLASLt
  void* const* nccl_comms;  // unused: this file calls no NCCL
} attention_libraries;
typedef struct {
  const void* q;  // float16[1, 2, 12, 16]
  long long q_shape[4];
  const void* k;  // float16[1, 2, 20, 16]
  long long k_shape[4];
  const void* v;  // float16[1, 2, 20, 16]
  long long v_shape[4];
  void* y;  // float16[1, 12, 32]
} attention_args;

struct attention_context {
  char error[256];
  attention_libraries libraries;
};

namespace {

struct attention_sizes {
  int unused;
};


inline cudaError_t complain(attention_context* ctx, cudaError_t status, const char* text) {
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

inline cudaError_t check_constants(attention_context* ctx, const attention_args* args) {
  if (!args) return complain(ctx, cudaErrorInvalidValue, "no arguments");
  return cudaSuccess;
}

inline cudaError_t solve(attention_context* ctx, const attention_args* args, attention_sizes& n) {
  const cudaError_t status = check_constants(ctx, args);
  if (status != cudaSuccess) return status;
  if (args->q_shape[0] != 1 || args->q_shape[1] != 2 || args->q_shape[2] != 12 || args->q_shape[3] != 16)
    return complain(ctx, cudaErrorInvalidValue, "the extents of q are not float16[1, 2, 12, 16]");
  if (args->k_shape[0] != 1 || args->k_shape[1] != 2 || args->k_shape[2] != 20 || args->k_shape[3] != 16)
    return complain(ctx, cudaErrorInvalidValue, "the extents of k are not float16[1, 2, 20, 16]");
  if (args->v_shape[0] != 1 || args->v_shape[1] != 2 || args->v_shape[2] != 20 || args->v_shape[3] != 16)
    return complain(ctx, cudaErrorInvalidValue, "the extents of v are not float16[1, 2, 20, 16]");
  (void)n;
  return cudaSuccess;
}

inline cudaError_t check_pointers(attention_context* ctx, const attention_args* args, const attention_sizes& n) {
  (void)ctx, (void)args, (void)n;
  if (!args->q)
    return complain(ctx, cudaErrorInvalidValue, "q is null");
  if (reinterpret_cast<size_t>(args->q) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "q is not aligned to 16 bytes");
  if (!args->k)
    return complain(ctx, cudaErrorInvalidValue, "k is null");
  if (reinterpret_cast<size_t>(args->k) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "k is not aligned to 16 bytes");
  if (!args->v)
    return complain(ctx, cudaErrorInvalidValue, "v is null");
  if (reinterpret_cast<size_t>(args->v) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "v is not aligned to 16 bytes");
  if (!args->y)
    return complain(ctx, cudaErrorInvalidValue, "y is null");
  if (reinterpret_cast<size_t>(args->y) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "y is not aligned to 16 bytes");
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t attention_create(attention_context** ctx, const attention_libraries* libs) {
  if (!ctx) return cudaErrorInvalidValue;
  *ctx = nullptr;
  attention_context* made = new attention_context();
  if (libs) made->libraries = *libs;
  cudaError_t status = cudaSuccess;
  if (status != cudaSuccess) {
    delete made;
    return status;
  }
  *ctx = made;
  return cudaSuccess;
}

// Bytes; (size_t)-1 where the extents contradict one another or the model. Pointers are not looked at.
size_t attention_workspace_bytes(const attention_args* args) {
  attention_sizes n;
  return solve(nullptr, args, n) == cudaSuccess ? size_t(0) : size_t(-1);
}

// The same; of the extents only those of constants are looked at. 0: nothing is prepared.
size_t attention_prepared_bytes(const attention_args* args) {
  return check_constants(nullptr, args) == cudaSuccess ? size_t(0) : size_t(-1);
}

cudaError_t attention_prepare(attention_context* ctx, const attention_args* args, void* prepared, cudaStream_t stream) {
  (void)ctx, (void)args, (void)prepared, (void)stream;  // nothing is prepared
  return cudaSuccess;
}

cudaError_t attention_launch(attention_context* ctx, const attention_args* args, const void* prepared, void* workspace,
                     cudaStream_t stream) {
  if (!ctx) return cudaErrorInvalidValue;
  attention_sizes n;
  cudaError_t status = solve(ctx, args, n);
  if (status == cudaSuccess) status = check_pointers(ctx, args, n);
  if (status != cudaSuccess) return status;
  char* const work = static_cast<char*>(workspace);
  char* const ready = const_cast<char*>(static_cast<const char*>(prepared));
  (void)work, (void)ready, (void)stream;
  // turned, mixed, rows, y
  status = launch(reinterpret_cast<const void*>(attention_0_mul_scaled_dot_product_atten_transpose_reshape), 2, 1, 1, dim3(64, 1, 1), 0, stream,
                  static_cast<const void*>(args->q),
                  static_cast<const void*>(args->k),
                  static_cast<const void*>(args->v),
                  static_cast<void*>(args->y));
  if (status != cudaSuccess) return complain(ctx, status, "attention_0_mul_scaled_dot_product_atten_transpose_reshape could not be launched");
  return cudaSuccess;
}

const char* attention_error(const attention_context* ctx) { return ctx ? ctx->error : "no context"; }

void attention_destroy(attention_context* ctx) { delete ctx; }

}  // extern "C"
#endif  // __CUDACC_RTC__
