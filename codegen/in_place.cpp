#include "codegen/in_place.h"

#include <algorithm>

#include "ir/type.h"

namespace fusec {
namespace {

std::uint32_t parameter_of(const KernelSource& source, ValueId value, bool written) {
  for (std::uint32_t i = 0; i < source.parameters.size(); ++i) {
    const KernelParameter& p = source.parameters[i];
    if (p.kind == KernelParameter::Kind::kTensor && p.value == value && p.written == written) return i;
  }
  return kNone;
}

// Each of the kernel's points stores an element of its own.
bool has_element_at_every_point(const Kernel& kernel, const KernelOutput& output) {
  std::vector<IndexExpr> extents;
  for (const std::uint32_t axis : output.axes) extents.push_back(kernel.pool.extent(axis));
  return element_count(extents) == element_count(output.type.shape);
}

}  // namespace

std::vector<KernelSource::InPlace> find_in_place(const Kernel& kernel, const Graph& graph, const KernelSource& source) {
  std::vector<KernelSource::InPlace> pairs;
  const bool by_element = source.schedule == "pointwise" || source.schedule == "transpose";
  if (!by_element || !source.tabled.empty()) return pairs;
  const Bounds& bounds = kernel.pool.bounds();
  const std::vector<ExprId> nodes = reachable(kernel.pool, roots_of(kernel));
  for (const KernelOutput& output : kernel.outputs) {
    if (bits(output.type.dtype) < 8 || !has_element_at_every_point(kernel, output)) continue;
    const IndexExpr stored = simplify(flat_index(output.type.shape, output.index), bounds);
    for (const ValueId input : inputs_of(kernel)) {
      const TensorType& type = graph.tensor(input);
      if (type.dtype != output.type.dtype || element_count(type.shape) != element_count(output.type.shape)) continue;
      const bool same_place = std::ranges::all_of(nodes, [&](ExprId id) {
        const ExprNode& node = kernel.pool[id];
        return node.op != ExprOp::kLoad || node.source != input ||
               simplify(flat_index(type.shape, node.indices), bounds) == stored;
      });
      const std::uint32_t read = parameter_of(source, input, false), written = parameter_of(source, output.value, true);
      if (same_place && read != kNone && written != kNone) pairs.push_back({read, written});
    }
  }
  return pairs;
}

void let_alias(KernelSource& source, const KernelSource::InPlace& pair) {
  for (const std::uint32_t i : {pair.read, pair.written}) {
    const std::string restricted = "__restrict__ " + source.parameters[i].name;
    // The kernel's list of parameters stands behind the functions of its parts, and ends where the body begins.
    const std::size_t kernel = source.text.find("__global__");
    const std::size_t body = source.text.find(") {", kernel);
    const std::size_t at = source.text.find(restricted, kernel);
    if (at < body) source.text.erase(at, std::string_view("__restrict__ ").size());
  }
}

}  // namespace fusec
