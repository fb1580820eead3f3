#include "codegen/access/concat_loads.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "analysis/kernel/loads.h"
#include "codegen/access/vector_access.h"
#include "ir/type.h"
#include "schedule/movement/lane_uniform.h"

namespace fusec {
namespace {

// Loads selected by conditions: the first that holds counts; the last load has no condition.
struct JoinedLoad {
  std::vector<ExprId> conditions, loads;
};

std::optional<JoinedLoad> joined_load(const ExprPool& pool, ExprId id) {
  JoinedLoad joined;
  const auto is_guarded = [&](ExprId load) {
    return pool[load].op == ExprOp::kLoad && pool[load].args[0] != kNoExpr && values_in(pool[load]).empty() &&
           pool[load].dtype == pool[joined.loads.empty() ? load : joined.loads[0]].dtype;
  };
  for (; pool[id].op == ExprOp::kSelect; id = pool[id].args[2]) {
    if (!is_guarded(pool[id].args[1]) || !is_of_indices(pool, pool[id].args[0])) return std::nullopt;
    joined.conditions.push_back(pool[id].args[0]);
    joined.loads.push_back(pool[id].args[1]);
  }
  if (joined.loads.empty() || !is_guarded(id) || !is_of_indices(pool, pool[id].args[0])) return std::nullopt;
  joined.loads.push_back(id);
  return joined;
}

// For a conjunction of comparisons: expressions that are nonnegative if it holds. Nothing for other conditions.
std::optional<std::vector<IndexExpr>> slacks(const ExprPool& pool, ExprId condition) {
  const auto all = index_comparisons(pool, condition);
  if (!all) return std::nullopt;
  std::vector<IndexExpr> found;
  for (const IndexComparison& c : *all) found.push_back(simplify(slack_of(c), pool.bounds()));
  return found;
}

// True if each load's mask follows from its own condition and the negation of the conditions before it.
bool guards_follow(const ExprPool& pool, const JoinedLoad& joined) {
  std::vector<IndexExpr> known;
  const auto is_known = [&](const IndexExpr& e) { return std::ranges::find(known, e) != known.end(); };
  for (std::size_t i = 0; i < joined.loads.size(); ++i) {
    const std::size_t before = known.size();
    std::vector<IndexExpr> open;  // comparisons of the condition that are not known so far
    if (i < joined.conditions.size()) {
      const auto holding = slacks(pool, joined.conditions[i]);
      if (!holding) return false;
      for (const IndexExpr& e : *holding)
        if (!is_known(e)) open.push_back(e);
      known.insert(known.end(), open.begin(), open.end());
    }
    const auto guards = slacks(pool, pool[joined.loads[i]].args[0]);
    if (!guards || !std::ranges::all_of(*guards, is_known)) return false;
    known.resize(before);
    // The negation of a conjunction is useful only if a single comparison is open: then that one is false.
    if (open.size() == 1) known.push_back(simplify(IndexExpr(-1) - open[0], pool.bounds()));
  }
  return true;
}

std::string at_first_lane(ExprEmitter& emitter, ExprId condition, std::uint32_t lane_axis) {
  const ExprEmitter::Mark mark = emitter.mark();
  emitter.bind(lane_axis, "0");
  std::string text = emitter.emit(condition);
  emitter.rewind(mark);
  return text;
}

}  // namespace

bool is_concat_vector(const Graph& graph, const ExprPool& pool, ExprId id, std::uint32_t lane_axis, int width) {
  const std::optional<JoinedLoad> joined = joined_load(pool, id);
  if (!joined || bits(loaded_dtype(pool, id)) == 4 || !guards_follow(pool, *joined)) return false;
  const auto is_whole = [&](ExprId condition) { return is_lane_uniform(pool, condition, lane_axis, width); };
  return std::ranges::all_of(joined->conditions, is_whole) && std::ranges::all_of(joined->loads, [&](ExprId load) {
           const ExprNode& n = pool[load];
           return is_whole(n.args[0]) &&
                  is_vector_position(position_of(graph, pool, load), lane_axis, width, n.dtype, pool.bounds());
         });
}

DType loaded_dtype(const ExprPool& pool, ExprId id) {
  while (pool[id].op == ExprOp::kSelect) id = pool[id].args[1];
  return pool[id].dtype;
}

std::string concat_words(ExprEmitter& emitter, ExprId id, std::uint32_t lane_axis, int width) {
  const ExprPool& pool = emitter.kernel().pool;
  const JoinedLoad joined = *joined_load(pool, id);
  const int words = bits(loaded_dtype(pool, id)) * width / 32;
  emitter.writer().use("words");
  std::string text;
  for (std::size_t i = 0; i < joined.loads.size(); ++i) {
    const ExprNode& n = pool[joined.loads[i]];
    const IndexExpr first = substitute(emitter.position(joined.loads[i]), [&](Variable v) {
      return v == Variable{Variable::Kind::kAxis, lane_axis} ? std::optional<IndexExpr>(0) : std::nullopt;
    });
    const std::string loaded =
        fmt::format("load_words<{}>({})", words,
                    address(emitter.writer().input(n.source), n.dtype, first, emitter.index_text(), pool.bounds()));
    const bool last = i + 1 == joined.loads.size();
    text += last ? loaded : fmt::format("{} ? {} : ", at_first_lane(emitter, joined.conditions[i], lane_axis), loaded);
  }
  return text;
}

}  // namespace fusec
