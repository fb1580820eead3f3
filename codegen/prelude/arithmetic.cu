// Integer and float operations whose results CUDA C++ leaves undefined or defines otherwise: NaN, overflow, division by
// 0, rounding of quotients, shifts.

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
