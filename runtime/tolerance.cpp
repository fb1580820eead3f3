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

Tolerances tolerances_of(const Graph& graph, const std::optional<Tolerance>& given) {
  Tolerances result{.given = given, .by_value = {}};
  std::vector<Tolerance> passed(graph.value_count(), {0, 0});  // by value: what its way leads through
  for (const Node& node : graph.nodes) {
    Tolerance before{0, 0};
    for (const ValueId v : node.inputs)
      if (v != kNone) before = wider(before, passed[v]);
    for (ValueId v = node.first_output; v < node.first_output + node.output_count; ++v) {
      passed[v] = before;
      if (graph.type(v).is_tuple) continue;
      const DType dtype = graph.tensor(v).dtype;
      if (is_half(dtype)) passed[v] = wider(before, default_tolerance(dtype));
      if (is_float(dtype)) result.by_value.emplace(graph.value(v).name, wider(passed[v], default_tolerance(dtype)));
    }
  }
  return result;
}

}  // namespace fusec
