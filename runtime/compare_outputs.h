// Decides whether outputs are right: near the expected values, or near the graph's values in float64. The second test
// is for graphs in which op-by-op rounding makes the expected values inaccurate themselves.
//
//   y = a - b, bfloat16, a and b nearly equal:   expected 0.5, got 0.3125, float64 says 0.31    ->    right
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/reference/reference.h"
#include "runtime/tolerance.h"

namespace fusec {

// Errors against float64 may be this many times those of op-by-op rounding. The limit holds for each element (against
// the worst rounding error of its neighbourhood) and for the root mean square over an output.
inline constexpr double kRoundingFactor = 2;

// Number of roundings of a graph whose errors set that limit: the reference's and random ones, since one rounding may
// be accurate by chance. An output that exceeds the limit after all of them is wrong.
inline constexpr std::uint64_t kRoundings = 4;

// Errors of op-by-op rounding against float64.
struct RoundingErrors {
  std::vector<double> worst;  // by element: greatest error among elements with the same leading indices, or among all
  double root_mean_square = 0;
};

// The values of a graph evaluated in float64, and the errors of rounding by value name.
struct Float64Values {
  TensorMap values;
  std::map<std::string, RoundingErrors> rounding;
};
// Adds the results of one more op-by-op rounding: keeps the greater error of each element.
void add_rounding(const TensorMap& rounded, const Tolerances& tolerances, Float64Values& float64);

struct Difference {
  std::string output;
  std::vector<std::int64_t> index;  // of the first wrong element
  double got = 0, expected = 0;
  std::optional<double> float64;  // value in float64, if evaluated
  std::int64_t count = 0;         // number of wrong elements
};

struct Comparison {
  std::optional<Difference> difference;  // of the first output with wrong elements
  // The worst right element that is finite: its error, and its error divided by the allowed error.
  double largest_error = 0, largest_share = 0;
  std::string largest_in;
  std::int64_t by_float64 = 0;  // elements that are right because float64 says so
};

// Compares outputs with those of the same name in `want`. An element is right when
//  - the expected value is NaN or infinite and it is the same;
//  - |got - want| <= atol + rtol |want|. For a default tolerance, atol is multiplied by the output's magnitude if that
//    is over 1, and dtypes of at most 8 bits, which have few values, use min(|got|, |want|) in place of |want|. With
//    tolerance 0, 0 the signs must be equal too, also those of zeros;
//  - `float64` is given and the element is within the tolerance of it, or at most kRoundingFactor times as far from it
//    as rounding is.
// Throws Error(kInput) if `want` lacks an output or has another dtype or shape; for floats any float dtype will do.
Comparison compare_outputs(const TensorMap& got, const TensorMap& want, const Tolerances& tolerances,
                           const Float64Values* float64 = nullptr);

std::optional<Difference> first_difference(const TensorMap& got, const TensorMap& want, const Tolerances& tolerances);

// The expected outputs of a graph. The reference is evaluated once; the evaluation in float64 happens only after a
// difference, and never with a tolerance from the user.
class ExpectedOutputs {
 public:
  enum class Values : std::uint8_t { kOutputs, kAll };  // kAll: of every node
  ExpectedOutputs(const Graph& graph, const TensorMap& tensors, Tolerances tolerances, Values values);
  // With expected outputs from elsewhere. The reference is then used only to estimate rounding errors.
  ExpectedOutputs(const Graph& graph, const TensorMap& tensors, Tolerances tolerances, TensorMap expected);

  bool has(const std::string& value) const { return expected_.contains(value); }
  Comparison compare(const TensorMap& got);

 private:
  TensorMap evaluate(const ResultRounding& rounding) const;
  Comparison compare_with_float64(const TensorMap& got) const;
  void add_another_rounding();

  const Graph& graph_;
  const TensorMap& tensors_;
  Tolerances tolerances_;
  Values values_;
  TensorMap expected_;
  bool from_elsewhere_;
  std::optional<Float64Values> float64_;
  std::uint64_t roundings_ = 0;  // number of roundings in float64_
};

}  // namespace fusec
