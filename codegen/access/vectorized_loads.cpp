#include "codegen/access/vectorized_loads.h"

#include <algorithm>

#include "codegen/access/vector_access.h"
#include "codegen/expr/emit_expr.h"
#include "ir/type.h"
#include "schedule/movement/access_samples.h"

namespace fusec {

VectorizedLoads vectorize_loads(const Kernel& merged, const Graph& graph, int width) {
  VectorizedLoads loads{.kernel = width > 1 ? split_last_axis(merged, width) : merged};
  const Kernel& kernel = loads.kernel;
  const std::vector<std::uint32_t>& axes = kernel.outputs[0].axes;
  if (width > 1) {
    KernelWriter writer(graph, false);
    ExprEmitter emitter(kernel, writer);
    for (std::size_t i = 0; i + 1 < axes.size(); ++i) emitter.bind(axes[i], "i");
    for (const auto& [id, type] : VectorLoads(emitter, graph, axes.back(), width).vector_loads(roots_of(kernel)))
      loads.vectors.push_back(id);
  }
  const Dependences depends = dependences(kernel.pool);
  for (const ExprId id : reachable(kernel.pool, roots_of(kernel))) {
    if (kernel.pool[id].op != ExprOp::kLoad || std::ranges::find(loads.vectors, id) != loads.vectors.end()) continue;
    (std::ranges::binary_search(depends[id], axes.back()) ? loads.apart : loads.uniform).push_back(id);
  }
  return loads;
}

double sectors_of_loads(const VectorizedLoads& loads, const Graph& graph, int width) {
  AccessSamples samples(loads.kernel, graph);
  double sectors = 0;
  for (const std::vector<ExprId>& once : {loads.vectors, loads.uniform})
    for (const ExprId id : once)
      if (!samples.is_small_table(id)) sectors += samples.sectors_per_point(id, width, true);
  for (const ExprId id : loads.apart)
    if (!samples.is_small_table(id)) sectors += samples.sectors_per_point(id, width, false);
  return sectors;
}

double accesses_of_loads(const VectorizedLoads& loads, int width) {
  double accesses = static_cast<double>(loads.uniform.size()) + width * static_cast<double>(loads.apart.size());
  for (const ExprId id : loads.vectors) accesses += std::max(1.0, bits(loads.kernel.pool[id].dtype) * width / 128.0);
  return accesses / width;
}

}  // namespace fusec
