// Number formats, integer and float arithmetic, and reductions over warps, blocks and clusters. Emitted files contain the
// parts that they use and those that these need, in an anonymous namespace; no part needs a header.

//@ part bf16
using bf16 = unsigned short;  // storage only; arithmetic is float
__device__ __forceinline__ float from_bf16(unsigned bits) { return __uint_as_float(bits << 16); }
__device__ __forceinline__ bf16 to_bf16(float x) {
  bf16 bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}

//@ part single_bf16
// Converts a bfloat16 that was loaded as 16 bits: one instruction, where widening and shifting are two.
__device__ __forceinline__ float from_single_bf16(unsigned short bits) {
  float x;
  asm("mov.b32 %0, {%1, %2};" : "=f"(x) : "h"((unsigned short)0), "h"(bits));
  return x;
}

//@ part round_to_bf16
__device__ __forceinline__ float round_to_bf16(float x) {  // converts a pair: a single conversion uses a slow pipe
  unsigned bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(x), "f"(0.0f));
  return __uint_as_float(bits);
}

//@ part fp16
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

//@ part small_float
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

//@ part fp8_e4m3 : small_float
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

//@ part fp8_e5m2 : small_float
using fp8_e5m2 = unsigned char;
__device__ __forceinline__ float from_fp8_e5m2(unsigned bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"((unsigned short)(bits << 8)));
  return x;
}
__device__ __forceinline__ fp8_e5m2 to_fp8_e5m2(float x) {  // infinity if the result would exceed 57344
  const unsigned sign = (__float_as_uint(x) >> 24) & 0x80u;
  if (x != x) return (fp8_e5m2)(sign | 0x7fu);
  if (fabsf(x) >= 61440.0f) return (fp8_e5m2)(sign | 0x7cu);
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  unsigned short pair;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
  return (fp8_e5m2)pair;
#else
  return (fp8_e5m2)(sign | narrow_magnitude<2, 15>(x));
#endif
}

//@ part e8m0
using e8m0 = unsigned char;  // a power of two, 2^(bits - 127)
__device__ __forceinline__ float from_e8m0(unsigned bits) {
  const float power = __uint_as_float(max(bits << 23, 0x00400000u));
  return fmaf(power, 0.0f, power);  // 255 is NaN; its power is infinite
}
__device__ __forceinline__ e8m0 to_e8m0(float x) {  // the nearest power of two to |x|, ties go up
  const unsigned magnitude = __float_as_uint(x) & 0x7fffffffu;
  if (magnitude >= 0x7f800000u) return 255;
  if (magnitude < 0x00600000u) return 0;
  return (e8m0)((magnitude >> 23) + (magnitude < 0x00800000u ? 1u : (magnitude >> 22) & 1u));
}

//@ part fp4_e2m1 : small_float
using fp4_e2m1 = unsigned char;  // two to a byte, low nibble first
__device__ __forceinline__ float from_fp4_e2m1(unsigned nibble) {
  const float magnitude = __uint_as_float((nibble & 7u) << 22) * __uint_as_float((127u + 126u) << 23);
  return (nibble & 8u) ? -magnitude : magnitude;
}
__device__ __forceinline__ unsigned to_fp4_e2m1(float x) {  // saturates at 6; NaN becomes 6
  if (x != x) return 7u;
  const unsigned sign = (__float_as_uint(x) >> 28) & 8u;
  if (!(fabsf(x) < 6.0f)) return sign | 7u;
  return sign | narrow_magnitude<1, 1>(x);
}

//@ part int4
using int4_pair = unsigned char;  // two to a byte, low nibble first
__device__ __forceinline__ int from_int4(unsigned nibble) { return (int)(nibble << 28) >> 28; }

//@ part uint4
using uint4_pair = unsigned char;  // two to a byte, low nibble first

//@ part nibble
// Element i of 4-bit elements, two to a byte, low nibble first.
template <class Index>
__device__ __forceinline__ unsigned nibble(const unsigned char* pairs, Index i) {
  return ((unsigned)pairs[i >> 1] >> (4 * (int)(i & 1))) & 15u;
}

//@ part nan_max
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

//@ part sign
template <class T>
__device__ __forceinline__ T sign_of(T x) { return (T)((T)0 < x) - (T)(x < (T)0); }

//@ part is_inf
__device__ __forceinline__ bool is_inf(float x) { return (__float_as_uint(x) & 0x7fffffffu) == 0x7f800000u; }
__device__ __forceinline__ bool is_inf(double x) {
  return (__double_as_longlong(x) & 0x7fffffffffffffffll) == 0x7ff0000000000000ll;
}

//@ part floor_index
// Division of indices that rounds towards minus infinity, and its remainder; b > 0.
template <class T>
__device__ __forceinline__ T floor_div_index(T a, T b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }
template <class T>
__device__ __forceinline__ T floor_mod_index(T a, T b) { return a - floor_div_index(a, b) * b; }

//@ part int_arithmetic
// Integer arithmetic that wraps on overflow.
__device__ __forceinline__ int wrap_add(int a, int b) { return (int)((unsigned)a + (unsigned)b); }
__device__ __forceinline__ int wrap_sub(int a, int b) { return (int)((unsigned)a - (unsigned)b); }
__device__ __forceinline__ int wrap_mul(int a, int b) { return (int)((unsigned)a * (unsigned)b); }
__device__ __forceinline__ int wrap_neg(int a) { return (int)(0u - (unsigned)a); }
__device__ __forceinline__ long long wrap_add(long long a, long long b) {
  return (long long)((unsigned long long)a + (unsigned long long)b);
}
__device__ __forceinline__ long long wrap_sub(long long a, long long b) {
  return (long long)((unsigned long long)a - (unsigned long long)b);
}
__device__ __forceinline__ long long wrap_mul(long long a, long long b) {
  return (long long)((unsigned long long)a * (unsigned long long)b);
}
__device__ __forceinline__ long long wrap_neg(long long a) { return (long long)(0ull - (unsigned long long)a); }

//@ part int_division : int_arithmetic
// Integer division that gives 0 if b is 0 and wraps on overflow.
template <class T>
__device__ __forceinline__ T int_div(T a, T b) {  // truncates
  if (b == 0) return 0;
  if constexpr ((T)-1 < (T)0)
    if (b == (T)-1) return wrap_neg(a);
  return a / b;
}
template <class T>
__device__ __forceinline__ T int_fmod(T a, T b) {  // sign of the dividend
  if (b == 0) return 0;
  if constexpr ((T)-1 < (T)0)
    if (b == (T)-1) return 0;
  return a % b;
}
template <class T>
__device__ __forceinline__ T int_floor_mod(T a, T b) {  // sign of the divisor
  const T r = int_fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
template <class T>
__device__ __forceinline__ T int_floor_div(T a, T b) {
  if (b == 0) return 0;
  const T q = int_div(a, b);
  return int_fmod(a, b) != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

//@ part int_pow
// Integer power, which wraps; truncated for a negative exponent.
template <class T>
__device__ __forceinline__ T int_pow(T base, T exponent) {
  if constexpr ((T)-1 < (T)0)
    if (exponent < 0) return base == (T)1 ? (T)1 : base == (T)-1 ? (exponent % 2 != 0 ? (T)-1 : (T)1) : (T)0;
  unsigned long long result = 1, power = (unsigned long long)base;
  for (unsigned long long left = (unsigned long long)exponent; left != 0; left >>= 1) {
    if (left & 1) result *= power;
    power *= power;
  }
  return (T)result;
}

//@ part float_floor_division
// % and // of floats as in Python: the remainder has the divisor's sign.
template <class T>
__device__ __forceinline__ T float_floor_mod(T a, T b) {
  const T r = fmod(a, b);
  return r != (T)0 && (r < (T)0) != (b < (T)0) ? r + b : r;
}
template <class T>
__device__ __forceinline__ T float_floor_div(T a, T b) {
  if (b == (T)0) return a / b;
  const T r = fmod(a, b);
  T quotient = (a - r) / b;
  if (r != (T)0 && (b < (T)0) != (r < (T)0)) quotient -= (T)1;
  if (quotient == (T)0) return copysign((T)0, a / b);
  const T whole = floor(quotient);
  return quotient - whole > (T)0.5 ? whole + (T)1 : whole;
}

//@ part shift
// Shifts by a negative count or at least the width of T give 0, or -1 for a right shift of a negative value.
template <class T>
__device__ __forceinline__ T shift_left(T a, int by) { return by < 0 || by >= (int)sizeof(T) * 8 ? (T)0 : (T)(a << by); }
template <class T>
__device__ __forceinline__ T shift_right(T a, int by) {
  return by < 0 || by >= (int)sizeof(T) * 8 ? (a < 0 ? (T)-1 : (T)0) : (T)(a >> by);
}

//@ part combine : nan_max
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

//@ part extreme
// Argmax and argmin: a value and its position. The first of equal values wins; NaN wins over every number. A reduction
// begins with the least (greatest) value of T at position 0.
template <class T, class Position = int>
struct Extreme {
  T value;
  Position position;
};
// operator() combines partial results of any positions; next() combines `a` with an element b at a later position.
struct FirstMaximum {
  template <class T, class P>
  __device__ __forceinline__ Extreme<T, P> operator()(Extreme<T, P> a, Extreme<T, P> b) const {
    const bool b_nan = b.value != b.value, same = a.value == b.value || (a.value != a.value && b_nan);
    const bool greater = !(b.value <= a.value) && a.value == a.value;
    return greater || (same && b.position < a.position) ? b : a;
  }
  template <class T, class P>
  __device__ __forceinline__ Extreme<T, P> next(Extreme<T, P> a, Extreme<T, P> b) const {
    return !(b.value <= a.value) && a.value == a.value ? b : a;
  }
};
struct FirstMinimum {
  template <class T, class P>
  __device__ __forceinline__ Extreme<T, P> operator()(Extreme<T, P> a, Extreme<T, P> b) const {
    const bool b_nan = b.value != b.value, same = a.value == b.value || (a.value != a.value && b_nan);
    const bool less = !(b.value >= a.value) && a.value == a.value;
    return less || (same && b.position < a.position) ? b : a;
  }
  template <class T, class P>
  __device__ __forceinline__ Extreme<T, P> next(Extreme<T, P> a, Extreme<T, P> b) const {
    return !(b.value >= a.value) && a.value == a.value ? b : a;
  }
};

//@ part lanes
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

//@ part extreme_lanes : extreme lanes
// Shuffles and stores the value and the position separately.
template <class T, class P>
__device__ __forceinline__ Extreme<T, P> from_lane_xor(Extreme<T, P> value, int mask) {
  return {from_lane_xor(value.value, mask), from_lane_xor(value.position, mask)};
}
template <class T, class P, int kCount>
struct Partials<Extreme<T, P>, kCount> {
  T value[kCount];
  P position[kCount];
  __device__ __forceinline__ void put(int i, Extreme<T, P> from) { value[i] = from.value, position[i] = from.position; }
  __device__ __forceinline__ Extreme<T, P> get(int i) const { return {value[i], position[i]}; }
};

//@ part warp_reduce : lanes
// Reduces over each kLanes neighbouring lanes, a power of two, in a fixed order; all of them get the result.
template <int kLanes = 32, class Combine, class T>
__device__ __forceinline__ T warp_reduce(T value, Combine combine) {
#pragma unroll
  for (int mask = kLanes / 2; mask > 0; mask >>= 1) value = combine(value, from_lane_xor(value, mask));
  return value;
}

//@ part odd_lanes_reduce
template <class T>
__device__ __forceinline__ T from_lane(T value, int lane) { return __shfl_sync(0xffffffffu, value, lane); }
__device__ __forceinline__ bool from_lane(bool value, int lane) {
  return __shfl_sync(0xffffffffu, (int)value, lane) != 0;
}
// Reduces over each kLanes neighbouring lanes, no power of two, counted from lane 0; all of them get the result.
template <int kLanes, class Combine, class T>
__device__ __forceinline__ T odd_lanes_reduce(T value, Combine combine) {
  const int lane = threadIdx.x % 32, mine = lane % kLanes;
#pragma unroll
  for (int step = kLanes > 16 ? 16 : kLanes > 8 ? 8 : kLanes > 4 ? 4 : 2; step > 0; step >>= 1) {
    const T other = from_lane(value, lane + step);
    if (mine < step && mine + step < kLanes) value = combine(value, other);
  }
  return from_lane(value, lane - mine);
}

//@ part extreme_odd_lanes : extreme odd_lanes_reduce
template <class T, class P>
__device__ __forceinline__ Extreme<T, P> from_lane(Extreme<T, P> value, int lane) {
  return {from_lane(value.value, lane), from_lane(value.position, lane)};
}

//@ part segment_reduce
// Reduces over each kLanes neighbouring lanes, a power of two; all of them get the result. Other groups of the warp may
// be inactive.
template <int kLanes, class Combine, class T>
__device__ __forceinline__ T segment_reduce(T value, Combine combine) {
  const unsigned lanes = 0xffffffffu >> (32 - kLanes) << (threadIdx.x % 32 / kLanes * kLanes);
#pragma unroll
  for (int mask = kLanes / 2; mask > 0; mask >>= 1) value = combine(value, (T)__shfl_xor_sync(lanes, value, mask));
  return value;
}

//@ part block_reduce : warp_reduce
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

//@ part cluster_reduce : block_reduce
// Reduces over all threads of a cluster of kBlocks blocks; every thread gets the result. Block `rank` writes its result
// to the shared memory of all. The kernel begins with cluster_arrive(); call 0 waits until all blocks have started.
__device__ __forceinline__ void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
__device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
template <int kThreads, int kBlocks, int kCall, class Combine, class T>
__device__ __forceinline__ T cluster_reduce(T value, Combine combine, int rank) {
  __shared__ T of_blocks[kBlocks];
  value = block_reduce<kThreads, kCall>(value, combine);
  if constexpr (kCall == 0) cluster_wait();
  if (threadIdx.x < kBlocks) {
    unsigned long long there;
    asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"((unsigned long long)&of_blocks[rank]), "r"((unsigned)threadIdx.x));
    *(T*)there = value;
  }
  cluster_arrive();
  cluster_wait();
  value = of_blocks[0];
#pragma unroll
  for (int block = 1; block < kBlocks; ++block) value = combine(value, of_blocks[block]);
  return value;
}

//@ part column_reduce : lanes
// Reduces kRows rows; thread t has a part of row t % kRows, of which all kParts threads get the result.
template <int kRows, int kParts, class Combine, class T>
__device__ __forceinline__ T column_reduce(T value, Combine combine) {
  __shared__ Partials<T, kRows> partial[kParts];
  const int row = threadIdx.x % kRows;
  partial[threadIdx.x / kRows].put(row, value);
  __syncthreads();
  T result = partial[0].get(row);
#pragma unroll
  for (int part = 1; part < kParts; ++part) result = combine(result, partial[part].get(row));
  __syncthreads();
  return result;
}

//@ part block_scan
// Inclusive scan over the block: thread i gets the combination of the values of threads 0 to i, `total` that of all.
template <int kThreads, class Combine, class T>
__device__ __forceinline__ T block_scan(T value, Combine combine, T& total) {
  __shared__ T partial[kThreads / 32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const T before = __shfl_up_sync(0xffffffffu, value, step);
    if (lane >= step) value = combine(before, value);
  }
  if (lane == 31) partial[warp] = value;
  __syncthreads();
  T earlier = partial[0];
  total = partial[0];
#pragma unroll
  for (int w = 1; w < kThreads / 32; ++w) {
    total = combine(total, partial[w]);
    if (w < warp) earlier = combine(earlier, partial[w]);
  }
  __syncthreads();
  return warp > 0 ? combine(earlier, value) : value;
}

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
