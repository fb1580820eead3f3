#include "analysis/lowering/formula_facts.h"

#include <algorithm>
#include <map>
#include <set>

#include "analysis/kernel/copy_expr.h"
#include "analysis/kernel/kernel.h"
#include "analysis/kernel/reduction_rewrites.h"
#include "ir/budget.h"
#include "ir/expr.h"

namespace fusec {
namespace {

using AxisSet = std::set<std::uint32_t>;

void add_axes(AxisSet& to, const IndexExpr& e) {
  for (const Variable v : variables_of(e))
    if (v.kind == Variable::Kind::kAxis) to.insert(v.id);
}

int operation_cost(ExprOp op) {
  switch (op) {
    case ExprOp::kConstant:
    case ExprOp::kLoad:
    case ExprOp::kIndex:
    case ExprOp::kConvert:
    case ExprOp::kReduce:
      return 0;
    case ExprOp::kNeg:
    case ExprOp::kAbs:
    case ExprOp::kAdd:
    case ExprOp::kSub:
    case ExprOp::kMul:
    case ExprOp::kRound:
    case ExprOp::kSelect:
    case ExprOp::kBitcast:
      return 1;
    default:
      return op >= ExprOp::kEq && op <= ExprOp::kXor ? 1 : op >= ExprOp::kMax && op <= ExprOp::kMin ? 1 : 8;
  }
}

// Returns the output axes among `all`.
AxisSet output_axes(const AxisSet& all, std::size_t rank) {
  AxisSet mine;
  for (const std::uint32_t a : all)
    if (a < rank) mine.insert(a);
  return mine;
}

// Returns the output axis a if the index is a // c, else kOther.
int divided_axis(const IndexExpr& e, std::size_t rank) {
  if (e.terms().size() != 1 || e.terms()[0].factors.size() != 1) return LoadFact::kOther;
  const IndexAtom& atom = *e.terms()[0].factors[0];
  if (atom.kind != IndexAtom::Kind::kFloorDiv || e != floor_div(atom.a, atom.b)) return LoadFact::kOther;
  const auto v = atom.a.as_variable();
  const bool is_axis = v && v->kind == Variable::Kind::kAxis && v->id < rank && atom.b.is_constant();
  return is_axis ? static_cast<int>(v->id) : LoadFact::kOther;
}

LoadFact load_fact(const Graph& graph, const ExprPool& pool, const ExprNode& n, std::size_t rank, const Shape& shape) {
  LoadFact fact;
  fact.source = n.source;
  const Shape& source_shape = graph.tensor(n.source).shape;
  fact.identity = source_shape == shape;
  for (std::size_t d = 0; d < n.indices.size(); ++d) {
    count_step();
    const auto v = n.indices[d].as_variable();
    const bool output_axis = v && v->kind == Variable::Kind::kAxis && v->id < rank;
    const bool fixed = n.indices[d].is_constant() || source_shape[d].is(1);
    fact.dims.push_back(output_axis ? static_cast<int>(v->id) : fixed ? LoadFact::kConstantIndex : LoadFact::kOther);
    fact.divided.push_back(divided_axis(n.indices[d], rank));
    // An index into extent 1 is 0 however it is written.
    if (!source_shape[d].is(1) && (!output_axis || v->id != d)) fact.identity = false;
    fact.along.emplace_back(std::vector<std::uint32_t>());
    for (const Variable w : variables_of(n.indices[d])) {
      if (w.kind == Variable::Kind::kSymbol) continue;
      if (w.kind != Variable::Kind::kAxis || w.id >= rank) {
        fact.along.back().reset();
        break;
      }
      fact.along.back()->push_back(w.id);
    }
    // A window: the index has an output axis and reduction axes.
    AxisSet axes;
    add_axes(axes, n.indices[d]);
    if (!output_axes(axes, rank).empty())
      for (const std::uint32_t a : axes)
        if (a >= rank) {
          const auto extent = pool.extent(a).as_constant();
          fact.times = static_cast<int>(std::min<std::int64_t>(64, fact.times * extent.value_or(8)));
        }
  }
  return fact;
}

// Returns the loads in a reduction's body, those of nested reductions included.
std::vector<ExprId> loads_under(const ExprPool& pool, ExprId body) {
  std::vector<ExprId> loads;
  for (const ExprId id : reachable(pool, std::vector<ExprId>{body}))
    if (pool[id].op == ExprOp::kLoad) loads.push_back(id);
  return loads;
}

// Returns, for each load that does not depend on all axes in `rows`, the missing ones.
std::vector<AxisSet> missing_in_loads(const ExprPool& pool, const Dependences& depends, ExprId body,
                                      const AxisSet& rows) {
  std::vector<AxisSet> missing;
  for (const ExprId load : loads_under(pool, body)) {
    count_step();
    AxisSet lacks = rows;
    for (const std::uint32_t a : depends[load]) lacks.erase(a);
    if (!lacks.empty()) missing.push_back(std::move(lacks));
  }
  return missing;
}

// Returns, for each load in the body, the axes of `rows` that its indices do not mention. Loaded indices and guards do
// not count: w[expert[row], k, n] is not a row's own matrix just because the row chooses it.
std::vector<AxisSet> missing_in_operands(const ExprPool& pool, ExprId body, const AxisSet& rows) {
  std::vector<AxisSet> missing;
  std::set<ExprId> seen;
  std::vector<ExprId> stack{body};
  while (!stack.empty()) {
    count_step();
    const ExprId id = stack.back();
    stack.pop_back();
    if (!seen.insert(id).second) continue;
    const ExprNode& n = pool[id];
    if (n.op != ExprOp::kLoad) {
      for (const ExprId a : n.args)
        if (a != kNoExpr) stack.push_back(a);
      continue;
    }
    AxisSet axes, lacks = rows;
    for (const IndexExpr& e : n.indices) add_axes(axes, e);
    for (const std::uint32_t a : axes) lacks.erase(a);
    if (!lacks.empty()) missing.push_back(std::move(lacks));
  }
  return missing;
}

bool each_has_its_own(const std::vector<AxisSet>& missing) {
  for (const AxisSet& a : missing)
    for (const AxisSet& b : missing)
      if (!std::includes(a.begin(), a.end(), b.begin(), b.end()) &&
          !std::includes(b.begin(), b.end(), a.begin(), a.end()))
        return true;
  return false;
}

// Returns whether the body multiplies two operands that are each reused along an axis of the other.
bool is_contraction(const ExprPool& pool, const Dependences& depends, ExprId body, const AxisSet& rows) {
  return each_has_its_own(missing_in_loads(pool, depends, body, rows)) ||
         each_has_its_own(missing_in_operands(pool, body, rows));
}

// Builds the formula without reductions along axes of extent 1. The output's axes have ids 0 .. rank-1.
ExprId build_plain_formula(ExprPool& pool, const Graph& graph, const Node& node, std::size_t output,
                           const Shape& shape) {
  ExprPool whole(graph.symbols);
  std::vector<IndexExpr> index;
  for (const Dim& extent : shape) index.push_back(IndexExpr::axis(whole.new_axis(extent)));
  const ExprId root = build_formula(whole, graph, node, output, index);
  const std::vector<IndexExpr>& extents = whole.bounds().axes;
  if (std::none_of(extents.begin() + static_cast<std::ptrdiff_t>(shape.size()), extents.end(),
                   [](const IndexExpr& extent) { return extent.is(1); })) {
    pool = std::move(whole);
    return root;
  }
  ExprCopier copier(whole, pool);
  for (std::size_t d = 0; d < shape.size(); ++d) copier.axis[d] = IndexExpr::axis(pool.new_axis(shape[d]));
  copier.drops_units = true;
  return copier.copy(root);
}

}  // namespace

FormulaFacts formula_facts(const Graph& graph, const Node& node, std::size_t output) {
  const Shape& shape = graph.tensor(node.first_output + static_cast<ValueId>(output)).shape;
  const std::size_t rank = shape.size();
  ExprPool pool(graph.symbols);
  const ExprId root = build_plain_formula(pool, graph, node, output, shape);
  const std::vector<ExprId> order = reachable(pool, std::vector<ExprId>{root});
  const Dependences depends = dependences(pool);

  FormulaFacts facts;
  facts.rows.assign(rank, false);
  const ExprId reduction = reduction_at(pool, root);
  if (reduction != kNoExpr) facts.reduction = pool[reduction].reduction;
  std::map<ExprId, AxisSet> reused;
  std::vector<std::uint8_t> in_reduction(pool.size(), 0);
  std::vector<AxisSet> all_rows;
  for (const ExprId id : order) {
    count_step();
    const ExprNode& n = pool[id];
    if (n.op != ExprOp::kReduce) continue;
    facts.reduces = true;
    facts.maximum = facts.maximum || n.reduction == Reduction::kMax;
    AxisSet rows, units;
    for (const std::uint32_t a : depends[id]) {
      if (a >= rank) {
        facts.nested = true;  // runs in every iteration of another reduction
      } else if (!shape[a].is(1)) {
        rows.insert(a);
        facts.rows[a] = true;
      } else {
        units.insert(a);
      }
    }
    all_rows.push_back(rows);
    for (const ExprId load : loads_under(pool, n.args[0])) {
      AxisSet lacks = rows;
      for (const std::uint32_t a : depends[load]) lacks.erase(a);
      if (!lacks.empty()) reused[load].insert(lacks.begin(), lacks.end());
    }
    facts.matmul = facts.matmul || is_contraction(pool, depends, n.args[0], rows);
    units.insert(rows.begin(), rows.end());
    facts.contraction = facts.contraction || is_contraction(pool, depends, n.args[0], units);
    for (const ExprId inner : reachable(pool, std::vector<ExprId>{n.args[0]})) in_reduction[inner] = 1;
  }
  // Next to a product, a value per row (the row's expert) is no second form; nor is a value of one row.
  if (!all_rows.empty()) {
    const AxisSet widest = *std::max_element(all_rows.begin(), all_rows.end(),
                                             [](const AxisSet& a, const AxisSet& b) { return a.size() < b.size(); });
    for (const AxisSet& rows : all_rows)
      if (rows != widest && !((facts.matmul || facts.contraction) &&
                              std::includes(widest.begin(), widest.end(), rows.begin(), rows.end())))
        facts.nested = true;
  }
  for (const ExprId id : order) {
    count_step();
    const ExprNode& n = pool[id];
    if (n.op == ExprOp::kLoad) {
      LoadFact fact = load_fact(graph, pool, n, rank, shape);
      fact.in_reduction = in_reduction[id] != 0;
      fact.reduced_alone = reduction != kNoExpr && pool[reduction].args[0] == id;
      if (const auto it = reused.find(id); it != reused.end()) {
        fact.reused = true;
        fact.lacks.assign(it->second.begin(), it->second.end());
      }
      facts.loads.push_back(std::move(fact));
    }
    facts.cost += operation_cost(n.op);
  }
  return facts;
}

std::shared_ptr<const FormulaFacts> FactsMemory::of(const Graph& graph, const Node& node, std::size_t output) {
  std::shared_ptr<const FormulaFacts>& known = known_[node.first_output + static_cast<ValueId>(output)];
  if (!known) known = std::make_shared<const FormulaFacts>(formula_facts(graph, node, output));
  return known;
}

}  // namespace fusec
