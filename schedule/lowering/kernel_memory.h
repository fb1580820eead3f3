// Caches built kernels by unit. Lowering a group builds its units again after each decision that changes one of them,
// and trials lower a group again with other nodes; two thirds of all units recur.
//
// A kernel depends on its unit and on what building asks of the inlining: which values are substituted, and which are
// quantized later. An entry keeps these questions with their answers, and serves each group that answers alike.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "analysis/lowering/build_kernel.h"
#include "analysis/lowering/formula_facts.h"
#include "schedule/kernel_forms.h"

namespace fusec {

// A built kernel, and what lowering has asked of it so far.
struct KnownKernel {
  BuiltKernel built;
  std::shared_ptr<const FormOfKernel> form = nullptr;  // of built.kernel
  std::optional<bool> is_rows_throughout = {}, goes_across = {};
  // The kernel that takes its place, if one does (lower_group's in_phases), and the form of what is lowered; null: not
  // asked yet.
  std::optional<Kernel> phases = {};
  std::shared_ptr<const FormOfKernel> form_of_lowered = nullptr;
};

// Valid as long as the graph does not change.
class KernelMemory {
 public:
  std::shared_ptr<KnownKernel> of(const Graph& graph, const std::vector<NodeId>& nodes, const Inlining& inlining,
                                  const KernelUnit& unit, bool round_intermediates);

 private:
  struct Entry {
    KernelUnit unit;
    bool round_intermediates;
    std::shared_ptr<KnownKernel> kernel;
  };
  std::multimap<ValueId, Entry> known_;  // by the unit's last value
  std::size_t expressions_ = 0;          // of the kernels there
};

// What lowering keeps of a graph.
struct LoweringMemory {
  FactsMemory facts;
  KernelMemory kernels;
};

}  // namespace fusec
