#include "codegen/schedules/stretches.h"

#include <algorithm>
#include <array>

#include "analysis/kernel_forms.h"
#include "analysis/loads.h"
#include "analysis/target.h"
#include "codegen/emit_expr.h"
#include "codegen/schedules/access_samples.h"
#include "codegen/schedules/vector_access.h"
#include "ir/type.h"

namespace fusec {
namespace {

using Way = TensorStretch::Way;

constexpr std::int64_t kMostStretchBytes = 20 * 1024, kMostOfAll = 40 * 1024;  // of shared memory
constexpr int kSampledStretchBlocks = 8, kSampledStretchWarps = 8;
constexpr std::int64_t kFewestStretchPoints = 1024;
constexpr double kWorth = 0.93, kWorthConflicts = 0.75;  // of the sectors otherwise

int bytes_of(const ExprNode& load) {
  return bits(load.dtype) / 8;
}

class StretchesPlanner {
 public:
  StretchesPlanner(const Kernel& kernel, const Graph& graph, const Target& target)
      : kernel_(kernel), graph_(graph), target_(target), samples_(kernel, graph) {}

  std::optional<StretchPlan> run() {
    if (writes_half_bytes(kernel_) || samples_.points() < kFewestStretchPoints) return std::nullopt;
    find_loads();
    choose_block();
    for (Seen& load : loads_) sample(load);
    std::vector<bool> taken(loads_.size(), false);
    for (std::size_t i = 0; i < loads_.size(); ++i)
      if (!taken[i]) add_stretch(i, taken);
    for (TensorStretch& stretch : plan_.stretches) {
      stretch.start = plan_.ends_start;
      plan_.ends_start += bytes_in_shared(stretch);
    }
    if (plan_.shared_bytes() > kMostOfAll) return std::nullopt;
    return std::move(plan_);
  }

 private:
  // The first and the last element, in bytes; -1: none.
  struct Ends {
    std::int64_t low = -1, high = -1;
    void add(std::int64_t at) {
      low = low < 0 ? at : std::min(low, at);
      high = std::max(high, at);
    }
    void add(const Ends& other) {
      if (other.high < 0) return;
      add(other.low);
      add(other.high);
    }
    std::int64_t vectors() const { return high < 0 ? 0 : high / 16 - low / 16 + 1; }
    std::int64_t sectors() const { return high < 0 ? 0 : high / 32 - low / 32 + 1; }
    bool near(int bytes) const { return high / 4 - low / 4 < (bytes == 8 ? 64 : 32); }
  };
  // What a warp's threads read by one access; all of them, or only the first and the last.
  struct Warp {
    Ends ends;
    std::vector<std::int64_t> places;
  };
  struct Cost {
    Way way = Way::kAsTheyLie;
    double sectors = 0;     // a point
    std::int64_t most = 0;  // vectors
    int conflicts = 0;
  };
  struct Seen {
    ExprId load;
    bool may = false;  // be one of a stretch
    double direct = 0;
    bool jumps = false;  // nobody knows where
    Cost alone{};
    std::vector<std::vector<Warp>> blocks{};
    std::vector<Warp> turning{};  // warps some of whose points are in one row and some in another
  };

  void find_loads() {
    const std::vector<ExprId> ids = reachable(kernel_.pool, roots_of(kernel_));
    // What places are made of, and what is made of loads.
    std::vector<ExprId> looked_up;
    std::vector<bool> looks_up(kernel_.pool.size(), false), loads(kernel_.pool.size(), false);
    for (const ExprId id : ids) {
      const ExprNode& n = kernel_.pool[id];
      const std::vector<ExprId> values = values_in(n);
      looked_up.insert(looked_up.end(), values.begin(), values.end());
      loads[id] = n.op == ExprOp::kLoad || !values.empty() ||
                  std::ranges::any_of(n.args, [&](ExprId arg) { return arg != kNoExpr && loads[arg]; });
    }
    for (const ExprId id : reachable(kernel_.pool, looked_up)) looks_up[id] = true;
    for (const ExprId id : ids) {
      const ExprNode& n = kernel_.pool[id];
      if (n.op != ExprOp::kLoad || bits(n.dtype) < 8 || samples_.is_of_table(id)) continue;
      const bool guarded_by_load = n.args[0] != kNoExpr && loads[n.args[0]];
      loads_.push_back({.load = id, .may = !looks_up[id] && !guarded_by_load && !is_stored_place(id)});
    }
  }

  // What is stored where it is read is read by the thread that stores it: the tensors may be one.
  bool is_stored_place(ExprId load) const {
    const IndexExpr place = position_of(graph_, kernel_.pool, load);
    return std::ranges::any_of(kernel_.outputs, [&](const KernelOutput& output) {
      return simplify(flat_index(output.type.shape, output.index), kernel_.pool.bounds()) == place;
    });
  }

  void choose_block() {
    int widest = 1;
    for (const Seen& load : loads_)
      if (load.may) widest = std::max(widest, bytes_of(kernel_.pool[load.load]));
    plan_.each = widest == 8 ? 4 : 8;
    // Registers hold a position of each.
    const auto loads = std::ranges::count_if(loads_, &Seen::may);
    while (plan_.each > 2 && plan_.each * loads > 16) plan_.each /= 2;
    if (samples_.points() / (plan_.each * plan_.threads) >= target_.multiprocessors) return;
    plan_.threads = 128;
    plan_.each = std::min(plan_.each, 4);
  }
  std::int64_t points_of_block() const { return std::min(std::int64_t{plan_.threads} * plan_.each, samples_.points()); }

  void sample(Seen& seen) {
    seen.direct = samples_.sectors_a_point(seen.load, 1, false);
    if (!seen.may) return;
    const std::int64_t count = points_of_block(), warps = (count + kWarpLanes - 1) / kWarpLanes;
    for (const std::int64_t start : samples_.starts(count, kSampledStretchBlocks)) {
      std::vector<Warp>& block = seen.blocks.emplace_back();
      for (std::int64_t w = 0; w < warps; ++w)
        block.push_back(warp_at(seen.load, start + w * kWarpLanes,
                                w % std::max<std::int64_t>(1, warps / kSampledStretchWarps) == 0));
    }
    const Jumps jumps = jumps_of(seen.load);
    seen.jumps = jumps.unknown;
    std::vector<std::int64_t> turns = samples_.turns();
    for (const std::int64_t length : jumps.every) {
      const std::vector<std::int64_t> more = samples_.turns_every(length);
      turns.insert(turns.end(), more.begin(), more.end());
    }
    for (const std::int64_t turn : turns)
      if (turn % kWarpLanes != 0) seen.turning.push_back(warp_at(seen.load, turn / kWarpLanes * kWarpLanes, true));
    seen.alone = best_way({static_cast<std::size_t>(&seen - loads_.data())});
  }

  Warp warp_at(ExprId load, std::int64_t first, bool whole) {
    const int bytes = bytes_of(kernel_.pool[load]);
    Warp warp;
    for (int lane = 0; lane < kWarpLanes; lane += whole ? 1 : kWarpLanes - 1) {
      if (first + lane >= samples_.points()) break;
      samples_.move_to(first + lane);
      const auto at = samples_.position(load);
      if (!at) continue;
      warp.ends.add(*at * bytes);
      if (whole) warp.places.push_back(*at * bytes);
    }
    return warp;
  }

  // Of one load, or of several of one tensor that lie together.
  Cost cost(const std::vector<std::size_t>& members, Way way, std::int64_t limit) const {
    Cost cost{.way = way};
    const auto count = static_cast<double>(points_of_block());
    const std::size_t blocks = loads_[members[0]].blocks.size();
    for (std::size_t b = 0; b < blocks; ++b) {
      Ends ends;
      double otherwise = 0, of_far = 0;
      for (const std::size_t m : members) {
        const int bytes = bytes_of(kernel_.pool[loads_[m].load]);
        otherwise += loads_[m].direct * count;
        for (const Warp& warp : loads_[m].blocks[b]) {
          if (way == Way::kNear && !warp.ends.near(bytes))
            of_far += loads_[m].direct * kWarpLanes;
          else
            ends.add(warp.ends);
        }
      }
      if (ends.vectors() > limit) {
        cost.sectors += otherwise;
        continue;
      }
      cost.sectors += static_cast<double>(ends.sectors()) + of_far;
      cost.most = std::max(cost.most, ends.vectors());
      for (const std::size_t m : members) {
        const int bytes = bytes_of(kernel_.pool[loads_[m].load]);
        for (const Warp& warp : loads_[m].blocks[b])
          if (way != Way::kNear || warp.ends.near(bytes)) cost.conflicts += conflicts(warp, bytes, ends.low, way);
      }
    }
    cost.sectors /= count * static_cast<double>(blocks);
    for (const std::size_t m : members) {
      const int bytes = bytes_of(kernel_.pool[loads_[m].load]);
      for (const Warp& warp : loads_[m].turning)
        if (way != Way::kNear || warp.ends.near(bytes)) cost.conflicts += conflicts(warp, bytes, warp.ends.low, way);
    }
    // Samples need not have seen where it jumps.
    if (way == Way::kAsTheyLie && std::ranges::any_of(members, [&](std::size_t m) { return loads_[m].jumps; }))
      ++cost.conflicts;
    return cost;
  }

  // Points after which the remainder begins anew, where it is a part of an axis: a column of a row.
  std::optional<std::int64_t> length_of_row(const IndexAtom& remainder) const {
    IndexExpr of = remainder.a, length = remainder.b;
    if (of.terms().size() == 1 && of.constant_term() == 0 && of.terms()[0].coefficient == 1 &&
        of.terms()[0].factors.size() == 1 && of.terms()[0].factors[0]->kind == IndexAtom::Kind::kFloorDiv) {
      const IndexAtom& quotient = *of.terms()[0].factors[0];
      length *= quotient.b;
      of = quotient.a;
    }
    const auto axis = of.as_variable();
    if (!axis || axis->kind != Variable::Kind::kAxis) return std::nullopt;
    for (const Variable v : variables_of(length))
      if (v.kind != Variable::Kind::kSymbol) return std::nullopt;
    return samples_.hint(length) * samples_.stride(axis->id);
  }

  // Where it may go on elsewhere: behind so many points, again and again; or nobody knows: at a remainder of something
  // else, or where it is looked up.
  struct Jumps {
    std::vector<std::int64_t> every;
    bool unknown = false;
  };
  Jumps jumps_of(ExprId load) const {
    Jumps jumps;
    std::vector<IndexExpr> left = {position_of(graph_, kernel_.pool, load)};
    while (!left.empty()) {
      const IndexExpr e = left.back();
      left.pop_back();
      for (const IndexTerm& term : e.terms())
        for (const IndexAtomPtr& factor : term.factors) {
          if (factor->kind == IndexAtom::Kind::kVariable) {
            jumps.unknown = jumps.unknown || factor->variable.kind == Variable::Kind::kValue;
            continue;
          }
          if (factor->kind == IndexAtom::Kind::kMod) {
            const auto length = length_of_row(*factor);
            if (length) jumps.every.push_back(*length);
            jumps.unknown = jumps.unknown || !length;
          } else {
            left.insert(left.end(), {factor->a, factor->b});
          }
        }
    }
    return jumps;
  }

  // How often threads of a warp want different words of one bank.
  static int conflicts(const Warp& warp, int bytes, std::int64_t low, Way way) {
    const int lanes = bytes == 8 ? 16 : 32, unit = std::max(4, bytes);
    int found = 0;
    for (std::size_t first = 0; first < warp.places.size(); first += static_cast<std::size_t>(lanes)) {
      std::vector<std::int64_t> units;
      for (std::size_t i = first; i < std::min(warp.places.size(), first + static_cast<std::size_t>(lanes)); ++i)
        units.push_back((warp.places[i] - low / 16 * 16) / unit);
      std::ranges::sort(units);
      units.erase(std::unique(units.begin(), units.end()), units.end());
      std::array<int, 128> banks{};
      int most = 1;
      for (const std::int64_t u : units) {
        const std::int64_t place = way == Way::kApart ? u + u / lanes : u;
        const std::int64_t behind = u - (warp.ends.low - low / 16 * 16) / unit;
        const std::int64_t part = way == Way::kInParts ? std::min<std::int64_t>(3, behind / lanes) : 0;
        most = std::max(most, ++banks[static_cast<std::size_t>(place % lanes + part * 32)]);
      }
      found += most - 1;
    }
    return found;
  }

  // The fewest sectors without conflicts; with some where they are far fewer. Blocks that jump far had better read
  // their elements as they lie than all that is between.
  Cost best_way(const std::vector<std::size_t>& members) const {
    std::optional<Cost> best, best_free;
    const std::int64_t own = points_of_block() * bytes_of(kernel_.pool[loads_[members[0]].load]) / 16;
    for (const Way way : {Way::kAsTheyLie, Way::kInParts, Way::kApart, Way::kNear}) {
      for (const std::int64_t limit : {own + own / 4 + 4, 5 * own / 2, kMostStretchBytes / 16}) {
        const Cost other = cost(members, way, std::min(limit, kMostStretchBytes / 16));
        if (!best || other.sectors < 0.98 * best->sectors) best = other;
        if (other.conflicts == 0 && (!best_free || other.sectors < 0.98 * best_free->sectors)) best_free = other;
      }
      if (way == Way::kAsTheyLie && best_free && best_free->most > 0) break;
    }
    return best_free && best_free->sectors < 2 * best->sectors ? *best_free : *best;
  }

  // Loads of one tensor that one stretch of it could be for.
  bool lie_together(std::size_t a, std::size_t b) const {
    if (kernel_.pool[loads_[a].load].source != kernel_.pool[loads_[b].load].source) return false;
    for (std::size_t block = 0; block < loads_[a].blocks.size(); ++block) {
      Ends ends;
      for (const std::size_t load : {a, b})
        for (const Warp& warp : loads_[load].blocks[block]) ends.add(warp.ends);
      if (ends.vectors() <= kMostStretchBytes / 16) return true;
    }
    return false;
  }

  static std::int64_t bytes_in_shared(const TensorStretch& stretch) {
    const std::int64_t words = std::int64_t{4} * stretch.most;
    return 4 * (stretch.way == Way::kApart ? words + words / 16 + 4 : words) / 16 * 16;
  }

  void add_stretch(std::size_t first, std::vector<bool>& taken) {
    taken[first] = true;
    if (!loads_[first].may) {
      plan_.sectors += loads_[first].direct;
      return;
    }
    std::vector<std::size_t> members = {first};
    Cost best = loads_[first].alone;
    double direct = loads_[first].direct;
    for (std::size_t i = first + 1; i < loads_.size(); ++i) {
      if (taken[i] || !loads_[i].may || !lie_together(first, i)) continue;
      std::vector<std::size_t> more = members;
      more.push_back(i);
      const Cost together = best_way(more);
      if (together.sectors > 0.8 * (best.sectors + std::min(loads_[i].alone.sectors, loads_[i].direct))) continue;
      taken[i] = true;
      members = std::move(more);
      best = together;
      direct += loads_[i].direct;
    }
    if (best.most == 0 || best.sectors > (best.conflicts == 0 ? kWorth : kWorthConflicts) * direct) {
      plan_.sectors += direct;
      return;
    }
    plan_.sectors += best.sectors;
    TensorStretch stretch;
    for (const std::size_t m : members) stretch.loads.push_back(loads_[m].load);
    stretch.most = static_cast<int>(std::min(best.most + best.most / 8 + 4, kMostStretchBytes / 16));
    stretch.way = best.way;
    plan_.stretches.push_back(std::move(stretch));
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
  return StretchesPlanner(kernel, graph, target).run();
}

}  // namespace fusec
