// Whether outputs are right: near the expected ones, or, where rounding op by op makes those uncertain themselves, near
// what the graph gives in float64.
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

// Results may be this many times as far from float64 as those of op-by-op rounding are: each of them as the worst of
// its neighbourhood is, all of an output in their root mean square.
inline constexpr double kRoundingFactor = 2;

// One rounding of a graph may come out well by chance: as many are tried, the reference's and some at random, until an
// output that is not near float64 is excused, or is wrong.
inline constexpr std::uint64_t kRoundings = 4;

// How far the results of op-by-op rounding are from those in float64.
struct RoundingErrors {
  std::vector<double> worst;  // by element: in its neighbourhood: elements that share the leading indices, or all
  double root_mean_square = 0;
};

// The values that a graph has in float64.
struct Float64Values {
  TensorMap values;
  std::map<std::string, RoundingErrors> rounding;
};
// Takes the errors of further results of op-by-op rounding into account: the greater ones count.
void add_rounding(const TensorMap& rounded, const Tolerances& tolerances, Float64Values& float64);

struct Difference {
  std::string output;
  std::vector<std::int64_t> index;  // of the first element that is wrong
  double got = 0, expected = 0;
  std::optional<double> float64;  // where it was evaluated
  std::int64_t count = 0;         // how many are wrong
};

struct Comparison {
  std::optional<Difference> difference;  // of the first output that has wrong elements
  // The worst of the right elements that are finite, by the share of what it may be off.
  double largest_error = 0, largest_share = 0;
  std::string largest_in;
  std::int64_t by_float64 = 0;  // elements that are right because float64 says so
};

// Compares outputs with those of the same name in `want`. An element is right when
//  - it is the same NaN or infinity as the expected one, nothing else being right where that is not finite;
//  - |got - want| <= atol + rtol |want|. The atol of a default tolerance is multiplied by the output's magnitude where
//    that is over 1; rtol is of the smaller of |got| and |want| for dtypes of 8 bits and fewer, which have few values.
//    Where the user's tolerance is 0, 0, the sign of zero counts, too;
//  - or `float64` is given, and it is as near to that, or at most kRoundingFactor times as far from it as rounding is.
// Throws Error(kInput) where `want` lacks an output or has it in another dtype or shape; floats may be of any float
// dtype.
Comparison compare_outputs(const TensorMap& got, const TensorMap& want, const Tolerances& tolerances,
                           const Float64Values* float64 = nullptr);

std::optional<Difference> first_difference(const TensorMap& got, const TensorMap& want, const Tolerances& tolerances);

// What a run of a graph is to give. The reference is evaluated once, in float64 only after something was found to
// differ from it, and never where the tolerance is the user's.
class ExpectedOutputs {
 public:
  enum class Values : std::uint8_t { kOutputs, kAll };  // kAll: of every node
  ExpectedOutputs(const Graph& graph, const TensorMap& tensors, Tolerances tolerances, Values values);
  // The expected outputs are from elsewhere; the reference tells only how far rounding may be off.
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
  std::uint64_t roundings_ = 0;  // that float64_ has the errors of
};

}  // namespace fusec
