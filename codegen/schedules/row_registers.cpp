#include "codegen/schedules/row_registers.h"

#include <algorithm>
#include <compare>
#include <set>

#include "codegen/schedules/direct.h"
#include "codegen/schedules/vector_access.h"
#include "ir/type.h"

namespace fusec {
namespace {

constexpr int kMostWords = 64;            // of a thread, for all that it keeps
constexpr int kRegistersOfBlock = 32768;  // half of a multiprocessor's: the other half computes
constexpr int kMostElements = 64;         // of a loop's turns: each is emitted once more when the loop is unrolled

// Where a load reads, told by the axes of the first loop of its kind.
struct Place {
  ValueId source;
  DType dtype;
  IndexExpr position;
  std::vector<std::uint32_t> kind;
  auto operator<=>(const Place&) const = default;
};

std::vector<IndexExpr> extents_of(const ExprPool& pool, const RowLoop& loop) {
  std::vector<IndexExpr> extents;
  for (const std::uint32_t a : loop.axes) extents.push_back(pool.extent(a));
  return extents;
}

// How many turns a thread makes at most; 0 where that is unknown or too many.
int turns_of(const ExprPool& pool, const RowLoop& loop, int parts) {
  std::vector<std::uint32_t> axes = loop.axes;
  if (loop.width > 1) axes.pop_back();
  const auto most = range_of(point_count(pool, axes), pool.bounds()).max;
  if (most < 1 || most > std::int64_t{parts} * kMostElements) return 0;
  const auto turns = static_cast<int>((most + parts - 1) / parts);
  return turns * loop.width <= kMostElements ? turns : 0;
}

class Planner {
 public:
  Planner(const RowForm& form, const Graph& graph) : form_(form), graph_(graph), pool_(form.kernel.pool) {}

  RowRegisters run(const std::vector<RowLoop>& loops, int parts, int threads) {
    // By place: the loads that read there, and how many loops they are in.
    std::map<Place, std::pair<std::set<ExprId>, int>> places;
    std::vector<Place> in_order;
    for (const RowLoop& loop : loops) {
      const int turns = turns_of(pool_, loop, parts);
      if (turns == 0) continue;
      const RowLoop& kind = *std::ranges::find_if(loops, [&](const RowLoop& other) {
        return other.width == loop.width && extents_of(pool_, other) == extents_of(pool_, loop);
      });
      std::set<Place> here;
      for (const ExprId id : outside_reductions(form_, loop.roots)) {
        if (!may_be_kept(id, loop)) continue;
        const Place place = place_of(id, loop, kind);
        const auto [it, fresh] = places.try_emplace(place);
        if (fresh) in_order.push_back(place);
        it->second.first.insert(id);
        if (here.insert(place).second) ++it->second.second;
        turns_[place] = {turns, loop.width};
      }
    }
    RowRegisters plan;
    int words = 0;
    for (const Place& place : in_order) {
      const auto& [loads, uses] = places.at(place);
      if (uses < 2) continue;
      const auto [turns, width] = turns_.at(place);
      const int more = turns * std::max(1, width * bits(place.dtype) / 32);
      if (words + more > std::min(kMostWords, kRegistersOfBlock / threads)) continue;
      words += more;
      for (const ExprId id : loads) plan.slot_of[id] = plan.slots.size();
      plan.slots.push_back({.load = *loads.begin(), .width = width, .turns = turns, .name = "", .filled = false});
    }
    for (const RowLoop& loop : loops)
      for (const ExprId id : outside_reductions(form_, loop.roots))
        if (plan.slot_of.contains(id) && may_be_kept(id, loop)) plan.turns_of[loop.axes] = turns_of(pool_, loop, parts);
    return plan;
  }

 private:
  IndexExpr position_of(ExprId load) const {
    const ExprNode& n = pool_[load];
    return simplify(flat_index(graph_.tensor(n.source).shape, n.indices), pool_.bounds());
  }

  bool may_be_kept(ExprId id, const RowLoop& loop) const {
    const ExprNode& n = pool_[id];
    if (n.op != ExprOp::kLoad || n.args[0] != kNoExpr || bits(n.dtype) == 4) return false;
    const IndexExpr position = position_of(id);
    bool runs = false;
    for (const Variable v : variables_of(position)) {
      if (v.kind == Variable::Kind::kValue) return false;
      runs = runs || (v.kind == Variable::Kind::kAxis && std::ranges::find(loop.axes, v.id) != loop.axes.end());
    }
    return runs &&
           (loop.width == 1 || is_vector_position(position, loop.axes.back(), loop.width, n.dtype, pool_.bounds()));
  }

  Place place_of(ExprId id, const RowLoop& loop, const RowLoop& kind) const {
    const IndexExpr position = substitute(position_of(id), [&](Variable v) -> std::optional<IndexExpr> {
      const auto at = std::ranges::find(loop.axes, v.id);
      if (v.kind != Variable::Kind::kAxis || at == loop.axes.end()) return std::nullopt;
      return IndexExpr::axis(kind.axes[static_cast<std::size_t>(at - loop.axes.begin())]);
    });
    return {pool_[id].source, pool_[id].dtype, simplify(position, pool_.bounds()), kind.axes};
  }

  const RowForm& form_;
  const Graph& graph_;
  const ExprPool& pool_;
  std::map<Place, std::pair<int, int>> turns_;  // turns and width
};

}  // namespace

std::vector<ExprId> outside_reductions(const RowForm& form, const std::vector<ExprId>& roots) {
  const ExprPool& pool = form.kernel.pool;
  std::vector<std::uint8_t> seen(pool.size(), 0);
  std::vector<ExprId> found, stack(roots.rbegin(), roots.rend());
  while (!stack.empty()) {
    const ExprId id = stack.back();
    stack.pop_back();
    if (id == kNoExpr || seen[id]) continue;
    seen[id] = 1;
    found.push_back(id);
    if (pool[id].op == ExprOp::kReduce && std::ranges::find(form.reductions, id) != form.reductions.end()) continue;
    for (const ExprId argument : pool[id].args) stack.push_back(argument);
  }
  return found;
}

RowRegisters plan_row_registers(const RowForm& form, const Graph& graph, const std::vector<RowLoop>& loops, int parts,
                                int threads) {
  return Planner(form, graph).run(loops, parts, threads);
}

}  // namespace fusec
