// Caches the plans of a kernel, such as its row candidates or its stencil. The cache is a member of the kernel's form
// (schedule/kernel_forms.h), which equal kernels share (schedule/form_memory.h).
//
//   form.plans.of(kernel, graph, target, [&] { return find_nchw_stencil(kernel, graph, target); })
//
// A plan depends on the kernel, the types of the tensors that it loads, the symbols and the target. A lookup compares
// them, so entries never become stale. There is at most one entry for each result type of the functions passed to of().
#pragma once

#include <memory>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "analysis/kernel/kernel.h"
#include "schedule/target/target.h"

namespace fusec {

class PlanMemory {
 public:
  // Returns the cached result of `find`, or calls it. The reference is valid as long as the memory or a copy of it.
  template <typename Find>
  const auto& of(const Kernel& kernel, const Graph& graph, const Target& target, const Find& find) const {
    using Plan = std::invoke_result_t<Find>;
    if (const void* known = known_plan(graph, target, typeid(Plan))) return *static_cast<const Plan*>(known);
    const auto plan = std::make_shared<const Plan>(find());  // may look up other plans
    keep(kernel, graph, target, typeid(Plan), plan);
    return *plan;
  }

  // For plans that do not depend on the target.
  template <typename Find>
  const auto& of(const Kernel& kernel, const Graph& graph, const Find& find) const {
    static const Target kAny;
    return of(kernel, graph, kAny, find);
  }

 private:
  using KnownPlan = std::pair<const std::type_info*, std::shared_ptr<const void>>;
  struct Plans {
    std::vector<std::pair<ValueId, TensorType>> loaded;
    Symbols symbols;
    Target target;
    std::vector<KnownPlan> known = {};
  };

  Plans* plans_for(const Graph& graph, const Target& target) const;
  const void* known_plan(const Graph& graph, const Target& target, const std::type_info& kind) const;
  void keep(const Kernel& kernel, const Graph& graph, const Target& target, const std::type_info& kind,
            std::shared_ptr<const void> plan) const;

  mutable std::vector<Plans> all_;
};

}  // namespace fusec
