// Accumulators of two dependent reductions in one pass: online softmax (maximum, sum of exponentials) and moments
// (mean, squared deviations). Element counts of blocks, with which their moments merge.

//@ part online_softmax : exp_fast nan_max
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

//@ part online_softmax_lanes : online_softmax
// Online softmax for each of kWidth vector lanes: sum[e] of e^(element - shift[e]), where shift[e] is the maximum
// clamped to finite numbers. Every element rescales the sum: nearly always, some thread of the warp has a new maximum.
template <int kWidth>
struct OnlineSoftmaxLanes {
  float shift[kWidth], sum[kWidth];
  __device__ __forceinline__ OnlineSoftmaxLanes() {
#pragma unroll
    for (int e = 0; e < kWidth; ++e) shift[e] = -3.402823466e38f, sum[e] = 0.0f;
  }
  __device__ __forceinline__ void take_element(int place, float element) {
    const float before = shift[place], now = fminf(fmaxf(before, element), 3.402823466e38f);
    sum[place] = sum[place] * exp_fast(before - now) + exp_fast(element - now);
    shift[place] = now;
  }
  __device__ __forceinline__ void take_elements(const float (&elements)[kWidth]) {
#pragma unroll
    for (int e = 0; e < kWidth; ++e) take_element(e, elements[e]);
  }
  // The maximum, not clamped: minus infinity if the sum is 0, and the sum itself if that is infinite or NaN.
  __device__ __forceinline__ float greatest_of(int place) const {
    const float all = sum[place], infinity = __uint_as_float(0x7f800000u);
    if (all == 0.0f) return -infinity;
    return all < infinity ? shift[place] : all;
  }
};

//@ part running_moments : reciprocal_fast
// The fraction elements / count.
__device__ __forceinline__ float share_of(float elements, float count) { return elements * reciprocal_fast(count); }
__device__ __forceinline__ double share_of(double elements, double count) { return elements / count; }
// Welford moments: the sum times 2^-kScale, count, mean and squared deviations from the mean. Parts a and b merge as
//   squares = squares_a + squares_b + (mean_b - mean_a)^2 * count_a * count_b / count
template <class T, int kScale>
struct WelfordMoments {
  static constexpr T kUnit = T(1) / T(1ll << kScale);
  T sum = 0, count = 0, mean = 0, squares = 0;
  template <int kCount>
  __device__ __forceinline__ void take_elements(const T (&elements)[kCount]) {
    T more = 0, beside = 0;
#pragma unroll
    for (int e = 0; e < kCount; ++e) more += elements[e] * kUnit;
    const T here = more * (T(1) / (kCount * kUnit));
#pragma unroll
    for (int e = 0; e < kCount; ++e) beside += (elements[e] - here) * (elements[e] - here);
    const T before = count, apart = here - mean;
    sum += more;
    count += kCount;
    const T share = share_of(T(kCount), count);
    mean += apart * share;
    squares += beside + apart * share * (apart * before);  // before = 0: adds 0, even where apart^2 overflows
  }
  // Merges a partial result: its scaled sum `more`, squared deviations `beside` and count. `mean` is relative to
  // `about`, a number near all means, because means that are far from 0 lose precision.
  __device__ __forceinline__ void merge_partial(T more, T beside, T elements, T about) {
    if (elements == 0) return;
    const T before = count, apart = more / (elements * kUnit) - about - mean;
    sum += more;
    count += elements;
    const T share = elements / count;
    mean += apart * share;
    squares += beside + apart * share * (apart * before);  // before = 0: adds 0, even where apart^2 overflows
  }
};

//@ part shifted_moments : running_moments
// Moments for each of kWidth vector lanes. `shift` is the lane's first element, or 0 if that is not finite:
//   squared deviations from the mean = sum of (x - shift)^2 - (sum of (x - shift))^2 / count
// This loses little: the first sum is at most `count` times the result, because shift is one of the elements.
template <int kWidth, class T, int kScale>
struct ShiftedMoments {
  T shift[kWidth] = {}, apart[kWidth] = {}, squares[kWidth] = {}, count = 0;
  __device__ __forceinline__ void take_elements(const T (&elements)[kWidth]) {
    if (count == 0) {
#pragma unroll
      for (int e = 0; e < kWidth; ++e) shift[e] = isfinite(elements[e]) ? elements[e] : T(0);
    }
    count += 1;
#pragma unroll
    for (int e = 0; e < kWidth; ++e) {
      const T here = elements[e] - shift[e];
      apart[e] += here * WelfordMoments<T, kScale>::kUnit;
      squares[e] += here * here;
    }
  }
  __device__ __forceinline__ WelfordMoments<T, kScale> moments_of(int place) const {
    WelfordMoments<T, kScale> all;
    const T mean = apart[place] / (max(count, T(1)) * all.kUnit);
    const T left = squares[place] - apart[place] / all.kUnit * mean;
    all.sum = shift[place] * (count * all.kUnit) + apart[place];
    all.count = count;
    all.mean = shift[place] + mean;
    all.squares = isinf(squares[place]) ? squares[place] : left < 0 ? T(0) : left;  // keeps NaN
    return all;
  }
};

//@ part elements_of_chunk
// The number of lines for block `chunk`, if `chunks` blocks take kAtOnce lines at a time in turn.
template <int kAtOnce>
__device__ __forceinline__ float lines_of_chunk(int lines, int chunks, int chunk) {
  const int turns = lines / (kAtOnce * chunks), left = lines - turns * (kAtOnce * chunks) - chunk * kAtOnce;
  return (float)(turns * kAtOnce + min(max(left, 0), kAtOnce));
}
// How many of the first `elements` elements are of row `row`. A line has kLine elements, kBreadth of each row.
template <int kLine, int kBreadth, class Index>
__device__ __forceinline__ Index elements_of_row(Index elements, int row) {
  return elements / kLine * kBreadth + min(max((int)(elements % kLine) - row * kBreadth, 0), kBreadth);
}
// The number of elements of row `row` for block `chunk`, if `chunks` blocks take kAtOnce elements (whole lines) at a
// time in turn. Block 0 also takes the `before` elements (up to 8 lines) before the first of these.
template <int kAtOnce, int kLine, int kBreadth, class Index>
__device__ __forceinline__ float elements_of_chunk(Index elements, int before, int chunks, int chunk, int row) {
  constexpr int kAll = 8 * kLine;
  const int turn = kAtOnce * chunks;
  const Index turns = elements / turn, left = elements - turns * turn - chunk * kAtOnce;
  const int here = left < 0 ? 0 : left < kAtOnce ? (int)left : kAtOnce;
  Index found = turns * (kAtOnce / kLine * kBreadth) + elements_of_row<kLine, kBreadth>(here, row);
  if (chunk == 0) found += 8 * kBreadth - elements_of_row<kLine, kBreadth>(kAll - before, row);
  return (float)found;
}
