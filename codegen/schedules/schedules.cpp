#include "codegen/schedules/schedules.h"

#include "codegen/schedules/contraction.h"
#include "codegen/schedules/direct.h"
#include "codegen/schedules/pointwise.h"
#include "codegen/schedules/row_reduction.h"

namespace fusec {

std::vector<KernelSource> schedule(const Kernel& kernel, const Graph& graph, const Target& target, const EmitOptions&) {
  if (auto source = pointwise(kernel, graph, target)) return {std::move(*source)};
  if (auto source = contraction(kernel, graph, target)) return {std::move(*source)};
  if (auto sources = row_reduction(kernel, graph, target); !sources.empty()) return sources;
  return {direct(kernel, graph, target)};
}

}  // namespace fusec
