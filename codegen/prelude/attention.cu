// Attention: tiles in shared memory, a softmax that is kept while keys stream by.

//@ part copy_async
// Global to shared memory while the thread goes on; 0 where nothing is there. Copies are complete after wait_for_copies.
template <int kBytes>
__device__ __forceinline__ void copy_async(void* to, const void* from, bool there) {
  const unsigned shared = (unsigned)__cvta_generic_to_shared(to);
  const unsigned long long global = __cvta_generic_to_global(from);
  if constexpr (kBytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(shared), "l"(global), "r"(there ? 16 : 0));
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                 :
                 : "r"(shared), "l"(global), "n"(kBytes), "r"(there ? kBytes : 0));
}
__device__ __forceinline__ void wait_for_copies() { asm volatile("cp.async.wait_all;" : : : "memory"); }

//@ part load_matrices
// Four 8x8 matrices of 16-bit elements in shared memory, as fragments of mma: lanes 0 to 7 have the addresses of the rows
// of the first matrix, 8 to 15 those of the second, and so on.
__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void load_matrices(unsigned (&m)[4], unsigned row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(row));
}
__device__ __forceinline__ void load_matrices_transposed(unsigned (&m)[4], unsigned row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(row));
}

//@ part pack_pair
// Two 16-bit elements in a word, the first in the low half.
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

//@ part softmax_fragments : exp2_fast
// One more tile of scores, in fragments of mma: what was summed up so far shrinks to the new row maximum, the scores
// become exp((score - maximum) * log2_scale / log2(e)). A row is four lanes'; their shares of `total` are added at the end.
// kLarge: scores may be near the greatest float (masks do that), so that their product with the scale is none.
// What is subtracted before exponentials: of a row without any key 0.
__device__ __forceinline__ float shift_of(float greatest) {
  return greatest == __uint_as_float(0xff800000u) ? 0.0f : greatest;
}
__device__ __forceinline__ float weight_of(float score, float greatest, float log2_scale) {
  return exp2_fast((score - shift_of(greatest)) * log2_scale);
}
template <bool kLarge, int kKeys, int kColumns>
__device__ __forceinline__ void softmax_step(float (&score)[kKeys][4], float (&sum)[kColumns][4], float (&greatest)[2],
                                             float (&total)[2], float log2_scale) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float now = greatest[r];
#pragma unroll
    for (int n = 0; n < kKeys; ++n) now = fmaxf(now, fmaxf(score[n][2 * r], score[n][2 * r + 1]));
    now = fmaxf(now, __shfl_xor_sync(0xffffffffu, now, 1));
    now = fmaxf(now, __shfl_xor_sync(0xffffffffu, now, 2));
    const float shift = shift_of(now), shrink = exp2_fast((greatest[r] - shift) * log2_scale);
    greatest[r] = now;
    total[r] *= shrink;
#pragma unroll
    for (int m = 0; m < kColumns; ++m) sum[m][2 * r] *= shrink, sum[m][2 * r + 1] *= shrink;
#pragma unroll
    for (int n = 0; n < 2 * kKeys; ++n) {
      float& s = score[n / 2][2 * r + n % 2];
      s = exp2_fast(kLarge ? (s - shift) * log2_scale : s * log2_scale - shift * log2_scale);
      total[r] += s;
    }
  }
}

//@ part softmax_lanes
// The same for threads that each hold some rows; eight neighbouring lanes share them.
__device__ __forceinline__ float exponential(float x) { return expf(x); }
__device__ __forceinline__ double exponential(double x) { return exp(x); }
template <class T>
__device__ __forceinline__ T weight_of(T score, T greatest, T scale) {
  return exponential((score - (greatest == -(T)__uint_as_float(0x7f800000u) ? (T)0 : greatest)) * scale);
}
template <class T, int kRows, int kKeys, int kColumns>
__device__ __forceinline__ void softmax_step(T (&score)[kRows][kKeys], T (&sum)[kRows][kColumns], T (&greatest)[kRows],
                                             T (&total)[kRows], T scale) {
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    T now = greatest[r];
#pragma unroll
    for (int n = 0; n < kKeys; ++n) now = score[r][n] > now ? score[r][n] : now;
#pragma unroll
    for (int mask = 1; mask < 8; mask *= 2) {
      const T other = __shfl_xor_sync(0xffffffffu, now, mask);
      now = other > now ? other : now;
    }
    const T shift = now == -(T)__uint_as_float(0x7f800000u) ? (T)0 : now;
    const T shrink = exponential((greatest[r] - shift) * scale);
    greatest[r] = now;
    total[r] *= shrink;
#pragma unroll
    for (int m = 0; m < kColumns; ++m) sum[r][m] *= shrink;
#pragma unroll
    for (int n = 0; n < kKeys; ++n) {
      score[r][n] = exponential((score[r][n] - shift) * scale);
      total[r] += score[r][n];
    }
  }
}

//@ part multiply_rows
// Products of tiles in shared memory, four elements at a time. A thread has every 16th row and every 8th key.
template <class T>
struct alignas(16) Four {
  T v[4];
};
template <int kDepth, int kQueryStride, int kKeyStride, class T, int kRows, int kKeys>
__device__ __forceinline__ void multiply_keys(T (&score)[kRows][kKeys], const T* query, const T* key) {
#pragma unroll 4
  for (int e = 0; e < kDepth; e += 4) {
    Four<T> k[kKeys];
#pragma unroll
    for (int n = 0; n < kKeys; ++n) k[n] = *(const Four<T>*)(key + n * 8 * kKeyStride + e);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const Four<T> q = *(const Four<T>*)(query + r * 16 * kQueryStride + e);
#pragma unroll
      for (int n = 0; n < kKeys; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) score[r][n] += q.v[i] * k[n].v[i];
    }
  }
}
// kWide: neighbouring columns in fours, 32 apart; else single ones, 8 apart.
template <int kKeys, int kWeightStride, int kValueStride, bool kWide, class T, int kRows, int kColumns>
__device__ __forceinline__ void add_values(T (&sum)[kRows][kColumns], const T* weight, const T* value) {
#pragma unroll 2
  for (int j = 0; j < kKeys; j += 4) {
    Four<T> w[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) w[r] = *(const Four<T>*)(weight + r * 16 * kWeightStride + j);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const T* line = value + (j + i) * kValueStride;
#pragma unroll
      for (int m = 0; m < kColumns; m += kWide ? 4 : 1) {
        Four<T> v;
        if constexpr (kWide)
          v = *(const Four<T>*)(line + m * 8);
        else
          v.v[0] = line[m * 8];
#pragma unroll
        for (int r = 0; r < kRows; ++r)
#pragma unroll
          for (int c = 0; c < (kWide ? 4 : 1); ++c) sum[r][m + c] += w[r].v[i] * v.v[c];
      }
    }
  }
}

//@ part dynamic_shared
// Shared memory beyond 48 KiB has its size at launch.
extern __shared__ __align__(16) unsigned char dynamic_shared[];

//@ part neighbours
// Elements that are stored by one access.
template <class T, int kCount>
struct alignas(sizeof(T) * kCount) Neighbours {
  T v[kCount];
};
