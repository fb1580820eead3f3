#include "codegen/launch/update_in_place.h"

#include <algorithm>
#include <vector>

namespace fusec {
namespace {

class Updates {
 public:
  Updates(const Graph& graph, LoweredPlan& plan)
      : graph_(graph), plan_(plan), last_read_(graph.value_count(), -1), pinned_(graph.value_count(), false) {}

  void run() {
    std::int64_t position = 0;
    for (const LoweredGroup& group : plan_.groups)
      for (const LoweredStep& step : group.steps) {
        for (const ValueId v : step.reads) last_read_[root(v)] = position;
        for (const ValueId v : step.writes)
          if (group.prepared) pinned_[root(v)] = true;  // every launch reads it
        ++position;
      }
    for (const ValueId v : graph_.outputs) pinned_[root(v)] = true;
    // Backwards: an earlier update then joins all that a later one has already joined.
    bool some = false;
    for (std::size_t g = plan_.groups.size(); g-- > 0;) {
      LoweredGroup& group = plan_.groups[g];
      for (std::size_t i = group.steps.size(); i-- > 0;) {
        --position;
        if (group.prepared || !share(group.steps[i], position)) continue;
        group.steps.erase(group.steps.begin() + static_cast<std::ptrdiff_t>(i));
        some = true;
      }
    }
    if (some) drop_unused_kernels();
  }

 private:
  ValueId root(ValueId v) const { return plan_.storage_of[v]; }

  bool share(const LoweredStep& step, std::int64_t position) {
    if (step.kind != LoweredStep::Kind::kKernel || !plan_.kernels[step.kernel].copies_for_update) return false;
    const ValueId from = root(step.reads.at(0)), to = root(step.writes.at(0));
    if (from == to || last_read_[from] != position || pinned_[from]) return false;
    if (graph_.value(from).kind == Value::Kind::kResult) {
      move(from, to);
      last_read_[to] = std::max(last_read_[to], last_read_[from]);
      return true;
    }
    // The input's buffer is also this result's buffer, and no other's.
    const auto into_it = [&](const Alias& alias) { return root(alias.input) == from; };
    const bool only = std::ranges::count_if(graph_.aliases, into_it) == 1;
    if (!only || root(std::ranges::find_if(graph_.aliases, into_it)->output) != to) return false;
    move(to, from);
    last_read_[from] = std::max(last_read_[to], last_read_[from]);
    pinned_[from] = true;
    return true;
  }

  void move(ValueId from, ValueId to) {
    for (ValueId& storage : plan_.storage_of)
      if (storage == from) storage = to;
  }

  void drop_unused_kernels() {
    std::vector<std::uint32_t> now(plan_.kernels.size(), kNone);
    const auto each_use = [&](auto f) {
      for (LoweredGroup& group : plan_.groups)
        for (LoweredStep& step : group.steps) {
          if (step.kind == LoweredStep::Kind::kKernel) f(step.kernel);
          for (LoweredStep::Specialization& form : step.special)
            if (form.kernel != kNone) f(form.kernel);
        }
    };
    each_use([&](std::uint32_t& kernel) { now[kernel] = 0; });
    std::vector<KernelSource> kept;
    for (std::size_t k = 0; k < now.size(); ++k) {
      if (now[k] == kNone) continue;
      now[k] = static_cast<std::uint32_t>(kept.size());
      kept.push_back(std::move(plan_.kernels[k]));
    }
    plan_.kernels = std::move(kept);
    each_use([&](std::uint32_t& kernel) { kernel = now[kernel]; });
  }

  const Graph& graph_;
  LoweredPlan& plan_;
  std::vector<std::int64_t> last_read_;  // by root: the step
  std::vector<bool> pinned_;             // roots that must keep their contents after the last step that reads them
};

}  // namespace

void update_in_place(const Graph& graph, LoweredPlan& plan) {
  Updates(graph, plan).run();
}

}  // namespace fusec
