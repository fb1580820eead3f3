// Attention: online softmax with and without tensor cores, masks, and products of tiles without tensor cores.

//@ part softmax_fragments : exp2_fast
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

//@ part parity_after
// Returns `parity`, but not before the sums of exponentials are known, because compilers do not know that these are never
// negative. ptxas cannot move the exponentials to after a wait for this parity.
__device__ __forceinline__ int parity_after(const float (&total)[2], int parity) {
  return parity ^ (int)(total[0] + total[1] < 0.0f);
}

//@ part merge_key_warps : softmax_fragments
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

//@ part mask_keys
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

//@ part turn_registers
// Rotates registers by one row (of[r] = of[r + 1]), or by kBy keys of the first row, because registers have no index at
// run time: a loop that is not unrolled always uses the first.
template <class T, int kRows>
__device__ __forceinline__ void rotate_rows(T (&of)[kRows]) {
  const T first = of[0];
#pragma unroll
  for (int r = 0; r + 1 < kRows; ++r) of[r] = of[r + 1];
  of[kRows - 1] = first;
}
template <class T, int kRows, int kEach>
__device__ __forceinline__ void rotate_rows(T (&of)[kRows][kEach]) {
#pragma unroll
  for (int n = 0; n < kEach; ++n) {
    const T first = of[0][n];
#pragma unroll
    for (int r = 0; r + 1 < kRows; ++r) of[r][n] = of[r + 1][n];
    of[kRows - 1][n] = first;
  }
}
template <int kSlabs, int kEights>
__device__ __forceinline__ void rotate_rows(float (&of)[kSlabs][kEights][4]) {
#pragma unroll
  for (int n = 0; n < 2 * kEights; ++n) {
    const float first = of[0][n / 2][n % 2];
#pragma unroll
    for (int r = 0; r + 1 < 2 * kSlabs; ++r)
      of[r / 2][n / 2][r % 2 * 2 + n % 2] = of[(r + 1) / 2][n / 2][(r + 1) % 2 * 2 + n % 2];
    of[kSlabs - 1][n / 2][2 + n % 2] = first;
  }
}
template <int kBy, int kSlabs, int kEights>
__device__ __forceinline__ void rotate_keys(float (&of)[kSlabs][kEights][4]) {
  float first[kBy];
#pragma unroll
  for (int n = 0; n < kBy; ++n) first[n] = of[0][n / 2][n % 2];
#pragma unroll
  for (int n = 0; n + kBy < 2 * kEights; ++n) of[0][n / 2][n % 2] = of[0][(n + kBy) / 2][n % 2];
#pragma unroll
  for (int n = 0; n < kBy; ++n) of[0][kEights - kBy / 2 + n / 2][n % 2] = first[n];
}

//@ part softmax_lanes
__device__ __forceinline__ float exponential(float x) { return expf(x); }
__device__ __forceinline__ double exponential(double x) { return exp(x); }
// Softmax weight e^((score - greatest) * scale); a row without keys has the maximum -inf.
template <class T>
__device__ __forceinline__ T weight_in_lanes(T score, T greatest, T scale) {
  return exponential((score - (greatest == -(T)__uint_as_float(0x7f800000u) ? (T)0 : greatest)) * scale);
}
// Online softmax of one more tile of scores, without tensor cores; eight neighbouring lanes share kRows rows. Scores
// become weights; the accumulators `sum` and `total` (the lane's sum of weights) are rescaled to the new row maximum
// `greatest`.
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
// Four neighbouring elements, read as vectors of 16 bytes.
template <class T>
struct alignas(16) Four {
  T v[4];
};
// score[r][n] += dot product of row 16 r of `query` and row 8 n of `key` in shared memory.
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
// sum += weight * value for every 16th row in shared memory. A thread's columns are fours of neighbours, 32 apart
// (kWide), or single ones, 8 apart.
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
