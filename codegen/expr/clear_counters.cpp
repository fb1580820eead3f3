#include "codegen/expr/clear_counters.h"

#include "codegen/expr/index_text.h"
#include "codegen/expr/kernel_writer.h"

namespace fusec {

KernelSource clear_counters(const IndexExpr& count, std::uint32_t scratch, const Bounds& bounds, const Graph& graph,
                            bool wide) {
  constexpr int kThreads = 256;
  KernelWriter writer(graph, wide);
  const IndexText text{.bounds = bounds,
                       .wide = wide,
                       .variable = [&](Variable symbol) { return writer.symbol(symbol.id); },
                       .prelude = &writer.prelude};
  const std::string arrived = writer.workspace(count * 4, scratch, "unsigned arrived");
  writer.line("for ({0} i = threadIdx.x; i < {1}; i += {2}) {3}[i] = 0;", writer.index_type(), text.tight(count),
              kThreads, arrived);
  KernelSource source = writer.finish({"Counters of the next kernels: how many blocks have come."}, kThreads);
  source.name = "clear_counters";
  source.schedule = {KernelKind::kCounters};
  source.unaligned_vectors = true;
  return source;
}

}  // namespace fusec
