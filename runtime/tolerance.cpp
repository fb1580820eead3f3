#include "runtime/tolerance.h"

#include <algorithm>
#include <set>
#include <vector>

namespace fusec {
namespace {

bool is_half(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16;
}

Tolerance wider(const Tolerance& a, const Tolerance& b) {
  return {std::max(a.rtol, b.rtol), std::max(a.atol, b.atol)};
}

constexpr Tolerance kTf32{2e-3, 2e-2};

// Whether a node is a matrix product of float32 operands, which one pass of tf32 may compute.
bool is_single_product(const Graph& graph, const Node& node) {
  const bool grouped = node.op->name == "grouped_matmul";
  return (grouped || node.op->family == "matrix") && std::ranges::all_of(node.inputs, [&](ValueId v) {
           if (v == kNone || graph.operand(v).kind != Operand::Kind::kTensor) return true;
           const DType dtype = graph.tensor(v).dtype;
           return dtype == DType::kFloat32 || dtype == DType::kBool || (grouped && v == node.inputs[2]);
         });
}

// Whether a node rounds floats to integers: quantize, or a cast after round.
bool rounds_floats(const Graph& graph, const Node& node) {
  if (node.op->name != "quantize" && node.op->name != "cast") return false;
  const Operand rounded = graph.operand(node.inputs[0]);
  return rounded.kind == Operand::Kind::kTensor && is_float(graph.tensor(rounded.value).dtype);
}

// Whether a node is discontinuous: it rounds floats to whole numbers, integers, bools or narrow floats. Near a boundary
// the least error then changes the result by a step.
bool makes_steps(const Graph& graph, const Node& node) {
  static const std::set<std::string> kRoundings = {"round", "floor", "ceil", "trunc", "sign", "remainder", "fmod"};
  if (kRoundings.contains(node.op->name) || graph.attributes(node).has("rounding_mode")) return true;
  const bool of_floats = std::ranges::any_of(node.inputs, [&](ValueId v) {
    if (v == kNone || graph.operand(v).kind != Operand::Kind::kTensor) return false;
    return is_float(graph.tensor(v).dtype) && bits(graph.tensor(v).dtype) >= 16;
  });
  for (ValueId v = node.first_output; of_floats && v < node.first_output + node.output_count; ++v)
    if (!graph.type(v).is_tuple && (!is_float(graph.tensor(v).dtype) || bits(graph.tensor(v).dtype) <= 8)) return true;
  return false;
}

constexpr double kBetweenSteps = 1e-3;

// The fraction of a node's integers that may be one step off, if it rounds floats or moves such integers.
double share_of_steps(const Graph& graph, const Node& node, const Tolerance& before, bool computed,
                      const std::vector<double>& steps) {
  if (rounds_floats(graph, node)) return before.rtol > 0 ? 1 : computed ? kBetweenSteps : 0;
  double share = 0;
  if (node.op->family != "movement") return share;
  for (const ValueId v : node.inputs)
    if (v != kNone && graph.operand(v).kind == Operand::Kind::kTensor) share = std::max(share, steps[v]);
  return share;
}

}  // namespace

Tolerance default_tolerance(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return {1e-10, 1e-10};
    case DType::kFloat32:
      return {2e-5, 1e-4};
    case DType::kFloat16:
      return {1e-2, 1e-2};
    case DType::kBFloat16:
      return {3e-2, 3e-2};
    case DType::kFloat8E4M3FN:
      return {0.13, 0.05};
    case DType::kFloat8E5M2:
      return {0.26, 0.05};
    case DType::kFloat8E8M0FNU:
      return {1.0, 0};
    case DType::kFloat4E2M1FN:
      return {0.5, 0.5};
    default:
      return {0, 0};
  }
}

Tolerance Tolerances::of(const std::string& value, DType dtype) const {
  if (given && is_float(dtype)) return *given;
  const auto found = by_value.find(value);
  return found == by_value.end() ? default_tolerance(dtype) : found->second;
}

Tolerances tolerances_of(const Graph& graph, const std::optional<Tolerance>& given, bool allow_tf32) {
  Tolerances result{.given = given, .by_value = {}};
  std::vector<Tolerance> passed(graph.value_count(), {0, 0});  // by value: widest tolerance on its paths
  std::vector<bool> single(graph.value_count(), false);        // by value: a float32 result on its paths
  std::vector<bool> computed(graph.value_count(), false);      // by value: float arithmetic on its paths
  std::vector<double> steps(graph.value_count(), 0);           // by value: fraction of integers that may differ
  std::vector<bool> stepped(graph.value_count(), false);       // by value: a discontinuous op on its paths
  for (const Node& node : graph.nodes) {
    Tolerance before{0, 0};
    bool through_single = false, of_computed = false, of_steps = makes_steps(graph, node);
    const bool arithmetic = node.op->family != "movement" && node.op->name != "cast";
    for (const ValueId v : node.inputs) {
      if (v == kNone) continue;
      before = wider(before, passed[v]);
      through_single = through_single || single[v];
      of_computed = of_computed || computed[v];
      of_steps = of_steps || stepped[v];
    }
    if (allow_tf32 && is_single_product(graph, node)) before = wider(before, kTf32);
    for (ValueId v = node.first_output; v < node.first_output + node.output_count; ++v) {
      passed[v] = before;
      stepped[v] = of_steps;
      if (graph.type(v).is_tuple) continue;
      const DType dtype = graph.tensor(v).dtype;
      if (is_half(dtype)) passed[v] = wider(before, default_tolerance(dtype));
      single[v] = through_single || dtype == DType::kFloat32;
      computed[v] = is_float(dtype) && (of_computed || arithmetic);
      if (is_integer(dtype)) steps[v] = share_of_steps(graph, node, before, of_computed, steps);
      if (steps[v] > 0) result.by_value.emplace(graph.value(v).name, Tolerance{0, 1, steps[v], true});
      if (!is_float(dtype)) continue;
      const Tolerance own = default_tolerance(single[v] && dtype == DType::kFloat64 ? DType::kFloat32 : dtype);
      Tolerance tolerance = wider(passed[v], own);
      tolerance.is_stepped = of_steps;
      result.by_value.emplace(graph.value(v).name, tolerance);
    }
  }
  return result;
}

}  // namespace fusec
