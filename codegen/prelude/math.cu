// Fast float functions from approximate instructions, without a slow path (docs/numerics.md states their errors).
// __fadd_rn and __fmul_rn prevent contraction with the caller's arithmetic: the same value wherever inlined.

//@ part choose
// A select without a branch: both values are computed already.
__device__ __forceinline__ float choose(bool condition, float yes, float no) { return condition ? yes : no; }

//@ part exp2_fast
// 2^x; results below 2^-126 become 0.
__device__ __forceinline__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

//@ part exp_fast : exp2_fast
// e^x for x <= 0. The relative error grows with |x|, but the absolute error stays small, because e^x falls faster.
__device__ __forceinline__ float exp_fast(float x) { return exp2_fast(x * 1.44269504f); }

//@ part reciprocal_fast
// 1 / x over the full range of float.
__device__ __forceinline__ float reciprocal_fast(float x) {
  float y;
  asm("rcp.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

//@ part exact_mean
// sum / n, correctly rounded except near the smallest floats. high + low = 1 / n, both positive.
__device__ __forceinline__ float exact_mean(float sum, float high, float low) {
  return __fmaf_rn(sum, high, __fmul_rn(sum, low));
}

//@ part divide_fast
// a / b over the full range of float.
__device__ __forceinline__ float divide_fast(float a, float b) {
  float y;
  asm("div.full.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}

//@ part sigmoid : exp2_fast
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

//@ part sigmoid_precise
// sigmoid of x = 1 / (1 + e^-x). __fadd_rn prevents contraction with the last product of the exponential.
__device__ __forceinline__ float sigmoid(float x) { return 1.0f / __fadd_rn(1.0f, expf(-x)); }
__device__ __forceinline__ double sigmoid(double x) { return 1.0 / __dadd_rn(1.0, exp(-x)); }

//@ part log_fast
// log(1 + d) for |d| < 1/8 by a polynomial: the relative error of lg2.approx is large there.
__device__ __forceinline__ float log_near_one(float d) {
  float p = -0.17064395546913147f;
  p = fmaf(p, d, 0.20339637994766235f);
  p = fmaf(p, d, -0.24996288120746613f);
  p = fmaf(p, d, 0.33331334590911865f);
  p = fmaf(p, d, -0.50000011920928955f);
  return __fmul_rn(fmaf(p, d, 1.0f), d);
}
__device__ __forceinline__ float log_fast(float x) {
  float y;
  asm("lg2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  const float d = __fadd_rn(x, -1.0f);
  return fabsf(d) < 0.125f ? log_near_one(d) : __fmul_rn(y, 0.693147181f);
}

//@ part log1p_fast : log_fast
__device__ __forceinline__ float log1p_fast(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(__fadd_rn(1.0f, x)));
  return fabsf(x) < 0.125f ? log_near_one(x) : __fmul_rn(y, 0.693147181f);
}

//@ part expm1_fast : exp2_fast
// e^x - 1: the difference itself, or a polynomial for |x| < 0.35, where the difference would cancel.
__device__ __forceinline__ float expm1_fast(float x) {
  const float far = __fadd_rn(exp2_fast(x * 1.44269504f), -1.0f);
  float p = 1.3882394414395094e-03f;
  p = fmaf(p, x, 8.367173373699188e-03f);
  p = fmaf(p, x, 4.166721925139427e-02f);
  p = fmaf(p, x, 0.16666539013385773f);
  p = fmaf(p, x, 0.49999997019767761f);
  const float near = __fmul_rn(fmaf(p, x, 1.0f), x);  // a product keeps the sign of zero
  return fabsf(x) < 0.35f ? near : far;
}

//@ part softplus : exp2_fast
// log(1 + e^x) = max(x, 0) + log(1 + e^-|x|). softplus_below is the second term, a polynomial of e^-|x|.
__device__ __forceinline__ float softplus_below(float negative) {
  const float e = exp2_fast(negative * 1.44269504f);
  float p = 5.232623778283596e-03f;
  p = fmaf(p, e, -2.9504956677556038e-02f);
  p = fmaf(p, e, 7.822549343109131e-02f);
  p = fmaf(p, e, -0.1366320699453354f);
  p = fmaf(p, e, 0.1910598874092102f);
  p = fmaf(p, e, -0.2484297752380371f);
  p = fmaf(p, e, 0.3331909477710724f);
  p = fmaf(p, e, -0.4999949336051941f);
  return __fmul_rn(fmaf(p, e, 0.9999999403953552f), e);
}
__device__ __forceinline__ float softplus(float x) {
  return __fadd_rn(fmaxf(x, 0.0f), softplus_below(-fabsf(x)));
}

//@ part log1p_of_exp : softplus
// log(1 + e^x) that is infinite where e^x overflows, as step-by-step IEEE arithmetic gives.
__device__ __forceinline__ float log1p_of_exp(float x) {
  return x > 88.72284f ? __uint_as_float(0x7f800000u) : softplus(x);
}

//@ part log_of_sigmoid : log_fast
// log(s) for s = sigmoid(x). The fast s is 0 below 2^-126, the IEEE one only where e^-x overflows; x in between.
__device__ __forceinline__ float log_of_sigmoid(float s, float x) {
  return x < -87.0f && x > -88.72284f ? x : log_fast(s);
}

//@ part tanh_of_softplus : exp2_fast
// tanh(log(1 + e^x)) = n / (n + 2) with n = e^x (e^x + 2). x is clamped to 20, where this is 1, so n + 2 < 2^58.
__device__ __forceinline__ float tanh_of_softplus(float x) {
  const float e = exp2_fast((x > 20.0f ? 20.0f : x) * 1.44269504f);
  const float n = __fmul_rn(e, __fadd_rn(e, 2.0f));
  float reciprocal;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(reciprocal) : "f"(__fadd_rn(n, 2.0f)));
  return __fmul_rn(n, reciprocal);
}

//@ part one_plus_erf : exp2_fast
// 1 + erf(z), where erfc(|z|) is 2 to the power of a polynomial of |z|.
__device__ __forceinline__ float one_plus_erf(float z) {
  const float t = fabsf(z);
  float p = -1.496676395618124e-05f;
  p = fmaf(p, t, 2.1616480080410838e-04f);
  p = fmaf(p, t, -8.1280525773763657e-04f);
  p = fmaf(p, t, -1.7710333922877908e-03f);
  p = fmaf(p, t, 2.9028264805674553e-02f);
  p = fmaf(p, t, -1.4879004657268524e-01f);
  p = fmaf(p, t, -9.1836082935333252e-01f);
  p = fmaf(p, t, -1.6279118061065674f);
  const float tail = exp2_fast(__fmul_rn(p, t));
  float sign;  // -1 or 1: the result is tail if z is negative, else 2 - tail
  asm("lop3.b32 %0, %1, 0x80000000, 0xbf800000, 0x6a;" : "=f"(sign) : "f"(z));
  return fmaf(sign, tail, __fsub_rn(1.0f, sign));
}
