#include "schedule/lowering/kernel_memory.h"

#include <algorithm>
#include <utility>

namespace fusec {
namespace {

// Of all kernels that are kept, some 200 bytes each. Beyond, all begins anew: what is asked again is asked soon.
constexpr std::size_t kMostExpressionsKept = 200'000;

bool is_same_part(const std::optional<ConcatPart>& a, const std::optional<ConcatPart>& b) {
  return a.has_value() == b.has_value() && (!a || (a->dim == b->dim && a->offset == b->offset));
}

// Whether two units of these values become the same kernel wherever the same values are substituted.
bool are_alike(const KernelUnit& a, const KernelUnit& b) {
  return a.values == b.values && a.space == b.space && a.matmul == b.matmul &&
         a.vector_contraction == b.vector_contraction && a.nested == b.nested && a.smaller == b.smaller &&
         a.reshaped == b.reshaped && is_same_part(a.part, b.part);
}

bool answers_alike(const Graph& graph, const Inlining& inlining, const KernelUnit& unit, const BuiltKernel& built) {
  return std::ranges::all_of(built.asked, [&](const AskedOfInlining& asked) {
    return asked == ask_inlining(graph, inlining, unit, asked.value);
  });
}

// Whether an attention stores values beside its result. Which ones depends on the group's outputs, about which building
// asks nothing, so such a kernel serves no other group.
bool stores_alongside(const BuiltKernel& built) {
  return std::ranges::any_of(built.asked, &AskedOfInlining::stored_alongside);
}

}  // namespace

std::shared_ptr<KnownKernel> KernelMemory::of(const Graph& graph, const std::vector<NodeId>& nodes,
                                              const Inlining& inlining, const KernelUnit& unit,
                                              bool round_intermediates) {
  const auto [first, last] = known_.equal_range(unit.values.back());
  for (auto it = first; it != last; ++it) {
    const Entry& entry = it->second;
    const BuiltKernel& built = entry.kernel->built;
    if (entry.round_intermediates == round_intermediates && are_alike(entry.unit, unit) &&
        built.most_expressions <= most_expressions(graph, nodes) && answers_alike(graph, inlining, unit, built))
      return entry.kernel;
  }
  auto kernel = std::make_shared<KnownKernel>(
      KnownKernel{.built = build_kernel(graph, nodes, inlining, unit, round_intermediates)});
  if (kernel->built.over_duplicated != kNone || stores_alongside(kernel->built)) return kernel;
  if (expressions_ > kMostExpressionsKept) {
    known_.clear();
    expressions_ = 0;
  }
  expressions_ += kernel->built.kernel.pool.size();
  known_.emplace(unit.values.back(), Entry{unit, round_intermediates, kernel});
  return kernel;
}

}  // namespace fusec
