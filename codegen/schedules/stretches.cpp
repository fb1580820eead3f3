#include "codegen/schedules/stretches.h"

#include <algorithm>
#include <array>

#include "analysis/kernel_forms.h"
#include "codegen/emit_expr.h"
#include "codegen/schedules/access_samples.h"
#include "ir/type.h"

namespace fusec {
namespace {

constexpr std::int64_t kMostBytes = 20 * 1024, kMostOfAll = 40 * 1024;  // of shared memory
constexpr int kSampledBlocks = 5, kSampledPoints = 192, kSampledWarps = 8, kWarp = 32;
constexpr std::int64_t kFewestPoints = 1024;
constexpr double kWorth = 0.93;  // of the sectors otherwise
constexpr int kEndsBytes = 2 * 8 * 4;

int bytes_of(const ExprNode& load) {
  return bits(load.dtype) / 8;
}

class Planner {
 public:
  Planner(const Kernel& kernel, const Graph& graph, const Target& target)
      : kernel_(kernel), graph_(graph), target_(target), samples_(kernel, graph) {}

  std::optional<StretchPlan> run() {
    if (writes_half_bytes(kernel_) || samples_.points() < kFewestPoints) return std::nullopt;
    find_loads();
    if (loads_.empty()) return std::nullopt;
    choose_block();
    for (Seen& load : loads_) sample(load);
    std::vector<bool> taken(loads_.size(), false);
    for (std::size_t i = 0; i < loads_.size(); ++i)
      if (!taken[i]) add_stretch(i, taken);
    if (plan_.stretches.empty()) return std::nullopt;
    plan_.shared_bytes = 0;
    for (TensorStretch& stretch : plan_.stretches) {
      stretch.start = plan_.shared_bytes;
      plan_.shared_bytes += stretch.bytes;
    }
    plan_.shared_bytes += kEndsBytes * static_cast<std::int64_t>(plan_.stretches.size());
    if (plan_.shared_bytes > kMostOfAll) return std::nullopt;
    return std::move(plan_);
  }

 private:
  // Of each sampled block the first and the last element, in bytes; -1: none.
  struct Ends {
    std::int64_t low = -1, high = -1;
    void add(std::int64_t at) {
      low = low < 0 ? at : std::min(low, at);
      high = std::max(high, at);
    }
    std::int64_t vectors() const { return high < 0 ? 0 : high / 16 - low / 16 + 1; }
  };
  struct Seen {
    ExprId load;
    bool may = false;  // be one of a stretch
    double direct = 0;
    std::array<Ends, kSampledBlocks> ends{};
  };

  void find_loads() {
    const std::vector<ExprId> ids = reachable(kernel_.pool, roots_of(kernel_));
    std::vector<bool> looks_up(kernel_.pool.size(), false);
    const auto holds_load = [&](ExprId guard) {
      return guard != kNoExpr && std::ranges::any_of(reachable(kernel_.pool, std::vector<ExprId>{guard}),
                                                     [&](ExprId id) { return kernel_.pool[id].op == ExprOp::kLoad; });
    };
    for (const ExprId id : ids)
      for (const IndexExpr& e : kernel_.pool[id].indices)
        for (const Variable v : variables_of(e))
          if (v.kind == Variable::Kind::kValue)
            for (const ExprId inside : reachable(kernel_.pool, std::vector<ExprId>{v.id})) looks_up[inside] = true;
    for (const ExprId id : ids) {
      const ExprNode& n = kernel_.pool[id];
      if (n.op != ExprOp::kLoad || bits(n.dtype) < 8) continue;
      loads_.push_back({.load = id, .may = !looks_up[id] && !holds_load(n.args[0]) && !is_stored_place(id)});
    }
  }

  // What is stored where it is read is read by the thread that stores it: the tensors may be one.
  bool is_stored_place(ExprId load) const {
    const ExprNode& n = kernel_.pool[load];
    const IndexExpr place = simplify(flat_index(graph_.tensor(n.source).shape, n.indices), kernel_.pool.bounds());
    return std::ranges::any_of(kernel_.outputs, [&](const KernelOutput& output) {
      return simplify(flat_index(output.type.shape, output.index), kernel_.pool.bounds()) == place;
    });
  }

  void choose_block() {
    int widest = 1;
    for (const Seen& load : loads_)
      if (load.may) widest = std::max(widest, bytes_of(kernel_.pool[load.load]));
    plan_.each = widest >= 4 ? 4 : 8;
    while (plan_.each > 2 && samples_.points() / (plan_.each * plan_.threads) < target_.multiprocessors)
      plan_.each /= 2;
  }
  std::int64_t points_of_block() const { return std::int64_t{plan_.threads} * plan_.each; }

  void sample(Seen& seen) {
    seen.direct = samples_.sectors_a_point(seen.load, 1, false);
    if (!seen.may) return;
    const int bytes = bytes_of(kernel_.pool[seen.load]);
    const std::int64_t count = std::min(points_of_block(), samples_.points());
    const std::int64_t step = std::max<std::int64_t>(1, count / kSampledPoints) | 1;
    const std::vector<std::int64_t> starts = samples_.starts(count, kSampledBlocks);
    for (std::size_t b = 0; b < starts.size(); ++b) {
      const auto see = [&](std::int64_t i) {
        samples_.move_to(starts[b] + i);
        if (const auto at = samples_.position(seen.load)) seen.ends[b].add(*at * bytes);
      };
      for (std::int64_t i = 0; i < count; i += step) see(i);
      for (std::int64_t i = std::max<std::int64_t>(0, count - kWarp); i < count; ++i) see(i);
      for (std::int64_t i = 0; i < std::min<std::int64_t>(kWarp, count); ++i) see(i);
    }
  }

  struct Cost {
    double sectors = 0;     // a point
    std::int64_t most = 0;  // vectors
  };
  // Of one load, or of several of one tensor that lie together.
  Cost cost(const std::vector<std::size_t>& members) const {
    Cost cost;
    double direct = 0;
    for (const std::size_t m : members) direct += loads_[m].direct;
    const std::int64_t count = std::min(points_of_block(), samples_.points());
    const std::size_t blocks = samples_.starts(count, kSampledBlocks).size();
    for (std::size_t b = 0; b < blocks; ++b) {
      Ends ends;
      for (const std::size_t m : members)
        if (loads_[m].ends[b].high >= 0) ends.add(loads_[m].ends[b].low), ends.add(loads_[m].ends[b].high);
      const std::int64_t vectors = ends.vectors();
      const double copied = ends.high < 0 ? 0 : static_cast<double>(ends.high / 32 - ends.low / 32 + 1);
      if (vectors > kMostBytes / 16) {
        cost.sectors += direct * static_cast<double>(count);
      } else {
        cost.sectors += copied;
        cost.most = std::max(cost.most, vectors);
      }
    }
    cost.sectors /= static_cast<double>(blocks * static_cast<std::size_t>(count));
    return cost;
  }

  void add_stretch(std::size_t first, std::vector<bool>& taken) {
    taken[first] = true;
    if (!loads_[first].may) {
      plan_.sectors += loads_[first].direct;
      return;
    }
    std::vector<std::size_t> members = {first};
    Cost best = cost(members);
    double direct = loads_[first].direct;
    for (std::size_t i = first + 1; i < loads_.size(); ++i) {
      if (taken[i] || !loads_[i].may || kernel_.pool[loads_[i].load].source != kernel_.pool[loads_[first].load].source)
        continue;
      std::vector<std::size_t> more = members;
      more.push_back(i);
      const Cost together = cost(more), alone = cost({i});
      if (together.sectors > 0.8 * (best.sectors + std::min(alone.sectors, loads_[i].direct))) continue;
      taken[i] = true;
      members = std::move(more);
      best = together;
      direct += loads_[i].direct;
    }
    if (best.most == 0 || best.sectors > kWorth * direct) {
      plan_.sectors += direct;
      return;
    }
    plan_.sectors += best.sectors;
    TensorStretch stretch;
    for (const std::size_t m : members) stretch.loads.push_back(loads_[m].load);
    stretch.most = static_cast<int>(std::min(best.most + best.most / 8 + 4, kMostBytes / 16));
    const int as_they_lie = conflicts(members, false), apart = as_they_lie == 0 ? 0 : conflicts(members, true);
    stretch.apart = apart < as_they_lie;
    plan_.conflicts += std::min(apart, as_they_lie);
    const std::int64_t words = std::int64_t{4} * stretch.most;
    stretch.bytes = 4 * (stretch.apart ? words + words / 16 + 4 : words) / 16 * 16;
    plan_.stretches.push_back(std::move(stretch));
  }

  // How often threads of a warp want different words of one bank.
  int conflicts(const std::vector<std::size_t>& members, bool apart) {
    int found = 0;
    const std::int64_t count = std::min(points_of_block(), samples_.points());
    const std::vector<std::int64_t> starts = samples_.starts(count, kSampledBlocks);
    for (std::size_t b = 0; b < starts.size(); ++b) {
      std::int64_t low = -1;
      for (const std::size_t m : members)
        if (loads_[m].ends[b].low >= 0) low = low < 0 ? loads_[m].ends[b].low : std::min(low, loads_[m].ends[b].low);
      for (const std::size_t m : members) {
        const int bytes = bytes_of(kernel_.pool[loads_[m].load]);
        const int lanes = bytes == 8 ? 16 : 32, unit = std::max(4, bytes);
        for (int warp = 0; warp < kSampledWarps; ++warp) {
          const std::int64_t first = starts[b] + warp * count / kSampledWarps / kWarp * kWarp;
          for (int pass = 0; pass < kWarp; pass += lanes) {
            std::vector<std::int64_t> units;
            for (int lane = pass; lane < pass + lanes; ++lane) {
              if (first + lane >= samples_.points()) break;
              samples_.move_to(first + lane);
              const auto at = samples_.position(loads_[m].load);
              if (at) units.push_back((*at * bytes - low / 16 * 16) / unit);
            }
            std::ranges::sort(units);
            const auto rest = std::ranges::unique(units);
            units.erase(rest.begin(), rest.end());
            std::array<int, 32> banks{};
            int most = 0;
            for (const std::int64_t u : units) {
              const std::int64_t place = apart ? u + u / lanes : u;
              most = std::max(most, ++banks[static_cast<std::size_t>((place % lanes + lanes) % lanes)]);
            }
            found += std::max(0, most - 1);
          }
        }
      }
    }
    return found;
  }

  const Kernel& kernel_;
  const Graph& graph_;
  const Target& target_;
  AccessSamples samples_;
  std::vector<Seen> loads_;
  StretchPlan plan_;
};

}  // namespace

std::optional<StretchPlan> plan_stretches(const Kernel& kernel, const Graph& graph, const Target& target) {
  if (needs_wide_index(kernel, graph, point_count(kernel.pool, kernel.outputs[0].axes) + 8 * 256)) return std::nullopt;
  return Planner(kernel, graph, target).run();
}

}  // namespace fusec
