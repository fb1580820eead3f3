#include "runtime/tolerance.h"

#include <algorithm>
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

// A product that may be made in one pass of tf32.
bool is_single_product(const Graph& graph, const Node& node) {
  return node.op->family == "matrix" && std::ranges::all_of(node.inputs, [&](ValueId v) {
           if (v == kNone || graph.operand(v).kind != Operand::Kind::kTensor) return true;
           const DType dtype = graph.tensor(v).dtype;
           return dtype == DType::kFloat32 || dtype == DType::kBool;
         });
}

// Floats that may be off become integers: quantize, or a cast behind round.
bool rounds_halves(const Graph& graph, const Node& node, const Tolerance& before) {
  if (before.rtol == 0 || (node.op->name != "quantize" && node.op->name != "cast")) return false;
  const Operand rounded = graph.operand(node.inputs[0]);
  return rounded.kind == Operand::Kind::kTensor && is_float(graph.tensor(rounded.value).dtype);
}

bool moves_steps(const Graph& graph, const Node& node, const std::vector<bool>& is_step) {
  if (node.op->family != "movement") return false;
  return std::ranges::any_of(node.inputs, [&](ValueId v) {
    return v != kNone && graph.operand(v).kind == Operand::Kind::kTensor && is_step[v];
  });
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
  std::vector<Tolerance> passed(graph.value_count(), {0, 0});  // by value: what its way leads through
  std::vector<bool> single(graph.value_count(), false);        // by value: its way leads through float32
  std::vector<bool> is_step(graph.value_count(), false);       // by value: integers of which a neighbour is as good
  for (const Node& node : graph.nodes) {
    Tolerance before{0, 0};
    bool through_single = false;
    for (const ValueId v : node.inputs) {
      if (v == kNone) continue;
      before = wider(before, passed[v]);
      through_single = through_single || single[v];
    }
    if (allow_tf32 && is_single_product(graph, node)) before = wider(before, kTf32);
    for (ValueId v = node.first_output; v < node.first_output + node.output_count; ++v) {
      passed[v] = before;
      if (graph.type(v).is_tuple) continue;
      const DType dtype = graph.tensor(v).dtype;
      if (is_half(dtype)) passed[v] = wider(before, default_tolerance(dtype));
      single[v] = through_single || dtype == DType::kFloat32;
      is_step[v] = is_integer(dtype) && (rounds_halves(graph, node, before) || moves_steps(graph, node, is_step));
      if (is_step[v]) result.by_value.emplace(graph.value(v).name, Tolerance{0, 1});
      if (!is_float(dtype)) continue;
      const Tolerance own = default_tolerance(single[v] && dtype == DType::kFloat64 ? DType::kFloat32 : dtype);
      result.by_value.emplace(graph.value(v).name, wider(passed[v], own));
    }
  }
  return result;
}

}  // namespace fusec
