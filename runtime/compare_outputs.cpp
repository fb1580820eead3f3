#include "runtime/compare_outputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/error.h"

namespace fusec {
namespace {

// Values are clipped at this multiple of the median, so that a few huge values do not excuse errors of the others.
constexpr double kOutlier = 16;

// The magnitude of an output: the root mean square of its clipped, nonzero values. The error of a sum with cancellation
// depends on the size of its terms, and other outputs show that size. Zeros (rows without an expert, values that an
// activation cut off) do not show it.
double magnitude(const HostTensor& tensor) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < tensor.size(); ++i)
    if (const double v = std::fabs(tensor.real(i)); std::isfinite(v) && v != 0) values.push_back(v);
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  const double most = kOutlier * *middle;
  double squares = 0;  // in units of `most`, so that they do not overflow
  for (const double v : values) squares += std::min(v / most, 1.0) * std::min(v / most, 1.0);
  return most * std::sqrt(squares / static_cast<double>(values.size()));
}

constexpr std::int64_t kNeighbours = 32;

// The number of elements in a neighbourhood: those of the last dimensions that have at least kNeighbours elements
// together. All elements of a stepped output, since an error of one step may be anywhere.
std::int64_t neighbourhood(const std::vector<std::int64_t>& shape, bool is_stepped) {
  if (is_stepped) return std::max<std::int64_t>(element_count(shape), 1);
  std::int64_t count = 1;
  for (std::size_t d = shape.size(); d-- > 0 && count < kNeighbours;) count *= shape[d];
  return std::max<std::int64_t>(count, 1);
}

// The root mean square, without overflow of the squares.
class RootMeanSquare {
 public:
  void add(double value) {
    norm_ = std::hypot(norm_, value);
    ++count_;
  }
  double value() const { return count_ == 0 ? 0 : norm_ / std::sqrt(static_cast<double>(count_)); }

 private:
  double norm_ = 0;
  std::int64_t count_ = 0;
};

RoundingErrors rounding_errors(const HostTensor& float64, const HostTensor& reference, bool is_stepped) {
  RoundingErrors errors;
  RootMeanSquare of_all;
  const std::int64_t width = neighbourhood(reference.shape, is_stepped);
  for (std::int64_t begin = 0; begin < reference.size(); begin += width) {
    double worst = 0;
    for (std::int64_t i = begin; i < begin + width; ++i) {
      const double error = std::fabs(reference.real(i) - float64.real(i));
      if (!std::isfinite(error)) continue;
      worst = std::max(worst, error);
      of_all.add(error);
    }
    errors.worst.insert(errors.worst.end(), static_cast<std::size_t>(width), worst);
  }
  errors.root_mean_square = of_all.value();
  return errors;
}

std::uint64_t distance(DType dtype, std::int64_t a, std::int64_t b) {
  const bool a_is_less =
      dtype == DType::kUInt64 ? static_cast<std::uint64_t>(a) < static_cast<std::uint64_t>(b) : a < b;
  return static_cast<std::uint64_t>(a_is_less ? b : a) - static_cast<std::uint64_t>(a_is_less ? a : b);
}

// The error of one element, absolute and as a share of the allowed error; a share of at most 1 is right.
struct Deviation {
  double share, error;
};
constexpr double kWrong = std::numeric_limits<double>::infinity();

Deviation deviation(double got, double want, double allowed) {
  if (std::isnan(want)) return {std::isnan(got) ? 0 : kWrong, 0};
  if (!std::isfinite(want) || !std::isfinite(got)) return {got == want ? 0 : kWrong, 0};
  const double error = std::fabs(got - want);
  return {error <= allowed ? (error == 0 ? 0 : error / allowed) : kWrong, error};
}

class OutputComparison {
 public:
  OutputComparison(const std::string& output, const HostTensor& got, const HostTensor& want,
                   const Tolerances& tolerances, const Float64Values* float64)
      : output_(output),
        got_(got),
        want_(want),
        tolerance_(tolerances.of(output, got.dtype)),
        is_default_(!tolerances.given) {
    require_same_type();
    if (is_default_ && is_float(got.dtype)) tolerance_.atol *= std::max(1.0, magnitude(want));
    // The number of integers that may be one step off.
    steps_left_ = std::max(1.0, tolerance_.share * static_cast<double>(want.size()));
    if (float64 == nullptr) return;
    float64_ = &float64->values.at(output);
    rounding_ = &float64->rounding.at(output);
  }

  void add_to(Comparison& comparison) {
    for (std::int64_t i = 0; i < want_.size(); ++i) {
      const Deviation d = is_float(got_.dtype) ? of_float(i) : of_integer(i);
      if (d.share <= 1)
        note(d, comparison);
      else
        note_wrong(i);
    }
    if (!excused_.empty() && is_far_as_a_whole())
      std::ranges::for_each(excused_, [&](std::int64_t i) { note_wrong(i); });
    comparison.by_float64 += by_float64_;
    if (difference_ && !comparison.difference) comparison.difference = difference_;
  }

 private:
  void require_same_type() const {
    // Expected floats may have another float dtype, since another program may have computed them.
    if (got_.shape == want_.shape && (got_.dtype == want_.dtype || (is_float(got_.dtype) && is_float(want_.dtype))))
      return;
    const auto text = [](const HostTensor& t) {
      return fmt::format("{}[{}]", name(t.dtype), fmt::join(t.shape, ", "));
    };
    throw Error(ErrorKind::kInput, {.what = fmt::format("output \"{}\" cannot be compared", output_),
                                    .found = text(got_),
                                    .expected = text(want_)});
  }

  double allowed(double got, double want) const {
    const bool has_few_values = is_default_ && bits(got_.dtype) <= 8;
    const double size = has_few_values ? std::min(std::fabs(got), std::fabs(want)) : std::fabs(want);
    return tolerance_.atol + tolerance_.rtol * size;
  }

  Deviation of_float(std::int64_t i) {
    const double got = got_.real(i), want = want_.real(i);
    if (tolerance_.rtol == 0 && tolerance_.atol == 0 && std::signbit(got) != std::signbit(want) && !std::isnan(want))
      return {kWrong, 0};
    Deviation d = deviation(got, want, allowed(got, want));
    if (d.share <= 1 || float64_ == nullptr) return d;
    const double exact = float64_->real(i);
    // If the expected value is not finite, only the same value is right, even if float64 differs.
    if (!std::isfinite(want) || !std::isfinite(exact)) return d;
    return by_float64(i, deviation(got, exact, allowed(got, exact)),
                      deviation(got, exact, kRoundingFactor * rounding_->worst[static_cast<std::size_t>(i)]));
  }

  Deviation of_integer(std::int64_t i) {
    const std::int64_t got = got_.integer(i);
    const auto off_by = [&](std::int64_t value, double allowed) -> Deviation {
      const auto off = static_cast<double>(distance(got_.dtype, got, value));
      if (off == 0) return {0, 0};
      return {off <= allowed && steps_left_-- > 0 ? off / allowed : kWrong, off};
    };
    const Deviation d = off_by(want_.integer(i), tolerance_.atol);
    if (d.share <= 1 || float64_ == nullptr) return d;
    const std::int64_t exact = float64_->integer(i);
    const Deviation near = off_by(exact, tolerance_.atol);
    // Rounding excuses only steps of quantized values, no other integers.
    if (near.share <= 1 || tolerance_.atol == 0) return by_float64(i, near, near);
    return by_float64(i, near, off_by(exact, kRoundingFactor * rounding_->worst[static_cast<std::size_t>(i)]));
  }

  // Accepts an element that is near its float64 value, or as far from it as rounding errors.
  Deviation by_float64(std::int64_t i, const Deviation& near, const Deviation& as_far_as_rounding) {
    const bool excused = near.share > 1 && as_far_as_rounding.share <= 1;
    if (excused) excused_.push_back(i);
    if (excused || near.share <= 1) ++by_float64_;
    return excused ? as_far_as_rounding : near;
  }

  // Whether the errors of the whole output exceed those of rounding. Single elements may be excused by a rounding error
  // in their neighbourhood, but the output as a whole must pass this check.
  bool is_far_as_a_whole() const {
    RootMeanSquare errors;
    for (std::int64_t i = 0; i < got_.size(); ++i)
      if (const double error = got_.real(i) - float64_->real(i); std::isfinite(error)) errors.add(error);
    return errors.value() > kRoundingFactor * rounding_->root_mean_square;
  }

  void note_wrong(std::int64_t i) {
    if (!difference_)
      difference_ = Difference{.output = output_,
                               .index = index_of(i),
                               .got = got_.real(i),
                               .expected = want_.real(i),
                               .float64 = float64_ ? std::optional(float64_->real(i)) : std::nullopt,
                               .count = 0};
    ++difference_->count;
  }

  void note(const Deviation& d, Comparison& comparison) const {
    if (d.share < comparison.largest_share || d.error == 0) return;
    comparison.largest_share = d.share;
    comparison.largest_error = d.error;
    comparison.largest_in = output_;
  }

  std::vector<std::int64_t> index_of(std::int64_t element) const {
    std::vector<std::int64_t> index(want_.shape.size());
    for (std::size_t d = want_.shape.size(); d-- > 0; element /= want_.shape[d]) index[d] = element % want_.shape[d];
    return index;
  }

  const std::string& output_;
  const HostTensor& got_;
  const HostTensor& want_;
  Tolerance tolerance_;
  const bool is_default_;
  const HostTensor* float64_ = nullptr;
  const RoundingErrors* rounding_ = nullptr;
  double steps_left_ = 0;
  std::vector<std::int64_t> excused_;  // elements accepted only because of rounding errors
  std::int64_t by_float64_ = 0;
  std::optional<Difference> difference_;
};

}  // namespace

void add_rounding(const TensorMap& rounded, const Tolerances& tolerances, Float64Values& float64) {
  for (const auto& [output, values] : rounded) {
    const bool is_stepped = tolerances.of(output, values.dtype).is_stepped;
    RoundingErrors more = rounding_errors(float64.values.at(output), values, is_stepped);
    const auto [found, is_first] = float64.rounding.try_emplace(output, more);
    if (is_first) continue;
    RoundingErrors& so_far = found->second;
    so_far.root_mean_square = std::max(so_far.root_mean_square, more.root_mean_square);
    std::ranges::transform(so_far.worst, more.worst, so_far.worst.begin(),
                           [](double a, double b) { return std::max(a, b); });
  }
}

Comparison compare_outputs(const TensorMap& got, const TensorMap& want, const Tolerances& tolerances,
                           const Float64Values* float64) {
  Comparison comparison;
  for (const auto& [output, values] : got) {
    const auto expected = want.find(output);
    if (expected == want.end())
      throw Error(ErrorKind::kInput, fmt::format("there is nothing to compare output \"{}\" with", output));
    OutputComparison(output, values, expected->second, tolerances, float64).add_to(comparison);
  }
  return comparison;
}

std::optional<Difference> first_difference(const TensorMap& got, const TensorMap& want, const Tolerances& tolerances) {
  return compare_outputs(got, want, tolerances).difference;
}

ExpectedOutputs::ExpectedOutputs(const Graph& graph, const TensorMap& tensors, Tolerances tolerances, Values values)
    : graph_(graph),
      tensors_(tensors),
      tolerances_(std::move(tolerances)),
      values_(values),
      expected_(evaluate({})),
      from_elsewhere_(false) {}

ExpectedOutputs::ExpectedOutputs(const Graph& graph, const TensorMap& tensors, Tolerances tolerances,
                                 TensorMap expected)
    : graph_(graph),
      tensors_(tensors),
      tolerances_(std::move(tolerances)),
      values_(Values::kOutputs),
      expected_(std::move(expected)),
      from_elsewhere_(true) {}

TensorMap ExpectedOutputs::evaluate(const ResultRounding& rounding) const {
  return values_ == Values::kAll ? run_reference_all_values(graph_, tensors_, rounding)
                                 : run_reference(graph_, tensors_, rounding);
}

Comparison ExpectedOutputs::compare(const TensorMap& got) {
  Comparison comparison = compare_outputs(got, expected_, tolerances_);
  if (!comparison.difference || tolerances_.given) return comparison;
  if (!float64_) float64_ = Float64Values{.values = evaluate({Precision::kFloat64}), .rounding = {}};
  for (;;) {
    if (roundings_ > 0) comparison = compare_with_float64(got);
    if (!comparison.difference || roundings_ == kRoundings) return comparison;
    add_another_rounding();
  }
}

void ExpectedOutputs::add_another_rounding() {
  TensorMap evaluated;
  const bool is_reference = roundings_ == 0;
  if (!is_reference || from_elsewhere_)
    evaluated = evaluate(is_reference ? ResultRounding{} : ResultRounding{.random_seed = roundings_});
  add_rounding(is_reference && !from_elsewhere_ ? expected_ : evaluated, tolerances_, *float64_);
  ++roundings_;
}

Comparison ExpectedOutputs::compare_with_float64(const TensorMap& got) const {
  if (!from_elsewhere_) return compare_outputs(got, expected_, tolerances_, &*float64_);
  const Float64Values expected{.values = expected_, .rounding = float64_->rounding};
  return compare_outputs(got, expected_, tolerances_, &expected);
}

}  // namespace fusec
