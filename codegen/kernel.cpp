#include "codegen/kernel.h"

#include <algorithm>

namespace fusec {

std::vector<ValueId> inputs_of(const Kernel& kernel) {
  std::vector<ExprId> roots;
  for (const KernelOutput& output : kernel.outputs) roots.push_back(output.expr);
  std::vector<ValueId> inputs;
  std::vector<std::uint8_t> seen;
  for (const ExprId id : reachable(kernel.pool, roots)) {
    const ExprNode& n = kernel.pool[id];
    if (n.op != ExprOp::kLoad) continue;
    if (seen.size() <= n.source) seen.resize(n.source + 1, 0);
    if (!seen[n.source]) inputs.push_back(n.source);
    seen[n.source] = 1;
  }
  return inputs;
}

}  // namespace fusec
