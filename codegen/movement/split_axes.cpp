#include "codegen/movement/split_axes.h"

#include <set>

#include "analysis/kernel/copy_expr.h"
#include "analysis/kernel/loads.h"
#include "ir/type.h"

namespace fusec {
namespace {

// An output axis and what it is divided by somewhere.
using Division = std::pair<std::uint32_t, IndexExpr>;

struct Divisions {
  std::set<Division> of_axes;
  std::size_t count = 0;  // of all, nested ones too
};

bool without_axes(const IndexExpr& e) {
  for (const Variable v : variables_of(e))
    if (v.kind != Variable::Kind::kSymbol) return false;
  return true;
}

void see(const IndexExpr& position, Divisions& found) {
  std::vector<IndexExpr> left = {position};
  while (!left.empty()) {
    const IndexExpr e = left.back();
    left.pop_back();
    for (const IndexTerm& term : e.terms())
      for (const IndexAtomPtr& factor : term.factors) {
        if (factor->kind == IndexAtom::Kind::kVariable) continue;
        left.insert(left.end(), {factor->a, factor->b});
        if (factor->kind != IndexAtom::Kind::kFloorDiv && factor->kind != IndexAtom::Kind::kMod) continue;
        ++found.count;
        const auto v = factor->a.as_variable();
        if (v && v->kind == Variable::Kind::kAxis && without_axes(factor->b)) found.of_axes.insert({v->id, factor->b});
      }
  }
}

Divisions divisions_of(const Kernel& kernel, const Graph& graph) {
  Divisions found;
  const Bounds& bounds = kernel.pool.bounds();
  for (const ExprId id : reachable(kernel.pool, roots_of(kernel))) {
    const ExprNode& n = kernel.pool[id];
    if (n.op == ExprOp::kLoad) see(position_of(graph, kernel.pool, id), found);
    if (n.op == ExprOp::kIndex) see(n.indices[0], found);
  }
  for (const KernelOutput& output : kernel.outputs)
    see(simplify(flat_index(output.type.shape, output.index), bounds), found);
  return found;
}

bool divides_whole(const Kernel& kernel, const Division& division) {
  const Bounds& bounds = kernel.pool.bounds();
  const auto& [axis, by] = division;
  if (range_of(by, bounds).min < 1) return false;
  const IndexExpr& extent = kernel.pool.extent(axis);
  return simplify(floor_div(extent, by), bounds) * by == extent;
}

Kernel split(const Kernel& kernel, const Division& division) {
  return change_axes(kernel, [&](ExprPool& pool) {
    AxisChange change;
    for (const std::uint32_t a : kernel.outputs[0].axes) {
      const IndexExpr& extent = kernel.pool.extent(a);
      const bool here = a == division.first;
      const IndexExpr& by = division.second;
      change.new_axes.push_back(pool.new_axis(here ? simplify(floor_div(extent, by), pool.bounds()) : extent));
      IndexExpr value = IndexExpr::axis(change.new_axes.back());
      if (here) {
        change.new_axes.push_back(pool.new_axis(by));
        value = value * by + IndexExpr::axis(change.new_axes.back());
      }
      change.values.push_back(value);
    }
    return change;
  });
}

}  // namespace

Kernel split_axes(const Kernel& original, const Graph& graph) {
  constexpr int kMostSplits = 8;
  Kernel kernel = original;
  Divisions now = divisions_of(kernel, graph);
  for (int i = 0; i < kMostSplits && !now.of_axes.empty(); ++i) {
    std::optional<Kernel> best;
    Divisions then = now;
    const std::set<Division> candidates = now.of_axes;
    for (const Division& division : candidates) {
      if (!divides_whole(kernel, division)) continue;
      Kernel candidate = split(kernel, division);
      Divisions left = divisions_of(candidate, graph);
      if (left.count >= then.count) continue;
      best = std::move(candidate);
      then = std::move(left);
    }
    if (!best) break;
    kernel = *std::move(best);
    now = std::move(then);
  }
  return kernel;
}

}  // namespace fusec
