#include "analysis/lowering/build_kernel.h"

#include <algorithm>
#include <optional>
#include <set>

#include "analysis/kernel/copy_expr.h"
#include "analysis/kernel/loads.h"
#include "analysis/kernel/narrow_comparisons.h"
#include "analysis/kernel/negative_zero.h"
#include "analysis/kernel/reduction_rewrites.h"
#include "analysis/lowering/shared_row_axes.h"
#include "ir/budget.h"
#include "ir/constant_data.h"
#include "ir/index_size.h"
#include "ir/tuple_field.h"
#include "ir/type.h"

namespace fusec {
namespace {

// Limits on copies of one formula and on expressions. Beyond them a value is stored.
constexpr std::size_t kMostCopies = 24;
constexpr std::size_t kMostExprs = 30000;
constexpr std::size_t kExprsOfOperand = 8;  // further ones for each operand of the group's nodes, as those of a concat
// Most divisions, remainders, minima and maxima (ir/index_size.h) in the indices of one load. A load with more is not
// replaced: the value it reads is stored. Otherwise the indices of a chain of reshape and permute would grow with every
// link. The limit is a choice.
constexpr std::size_t kLargestIndices = 200;

class Building {
 public:
  Building(const Graph& graph, const std::vector<NodeId>& nodes, const Inlining& inlining, bool round_intermediates)
      : graph_(graph), nodes_(nodes), inlining_(inlining), round_intermediates_(round_intermediates) {}

  BuiltKernel run(const KernelUnit& unit) {
    // Collects the formulas with all their loads first, and notes which formula replaces each load.
    ExprPool raw(graph_.symbols);
    std::vector<IndexExpr> index;
    std::vector<std::uint32_t> axes;
    for (const Dim& extent : graph_.tensor(unit.space).shape) {
      count_step();
      axes.push_back(raw.new_axis(extent));
      index.push_back(IndexExpr::axis(axes.back()));
    }
    std::vector<ExprId> outputs;
    for (const ValueId v : unit.values)
      outputs.push_back(
          raw.load(v, graph_.tensor(v).dtype, index_of(unit, v, [&](std::size_t d) { return index[d]; })));
    std::vector<ExprId> replaced_by(raw.size(), kNoExpr);
    BuiltKernel built;
    std::map<ValueId, std::size_t>& copies = built.copies;
    std::set<NodeId> members;
    std::set<ExprId> operands;
    std::map<ExprId, ValueId> raw_reductions;
    std::map<ValueId, std::vector<ExprId>> stored_alongside;  // by value stored alongside: its loads
    SharedRowAxes row_axes(raw);
    const std::size_t most_exprs = most_expressions(graph_, nodes_);
    for (ExprId id = 0; id < raw.size(); ++id) {
      count_step();
      replaced_by.resize(raw.size(), kNoExpr);
      const ExprNode load = raw[id];
      if (load.op != ExprOp::kLoad || row_axes.is_given_up(id)) continue;
      const ValueId source = resolve_tuple(graph_, load.source);
      if (const Constant* constant = graph_.constant_of(source)) replaced_by[id] = literal_of(raw, *constant, load);
      built.asked.push_back(ask_inlining(graph_, inlining_, unit, load.source));
      if (!built.asked.back().substituted) continue;
      if (inlining_.stored_alongside(source)) stored_alongside[source].push_back(id);
      for (const auto& [v, dims] : inlining_.stored_alongside_from(source)) {
        if (load.args[0] != kNoExpr || stored_alongside.contains(v)) continue;
        std::vector<IndexExpr> at;
        for (const int d : dims) at.push_back(d < 0 ? IndexExpr(0) : load.indices[static_cast<std::size_t>(d)]);
        raw.load(v, graph_.tensor(v).dtype, std::move(at));
      }
      if (has_grown(load.indices)) {
        built.copies = {{source, 1}};
        built.over_duplicated = source;
        return built;
      }
      const Node& node = graph_.nodes[graph_.value(source).producer];
      members.insert(graph_.value(source).producer);
      built.most_expressions = raw.size();
      if (++copies[source] > kMostCopies || raw.size() > most_exprs) {
        built.over_duplicated = source;
        return built;
      }
      const auto first = static_cast<ExprId>(raw.size());
      const ExprId guard = reads_unguarded(raw, source, load) ? kNoExpr : load.args[0];
      const FormulaFacts& facts = *inlining_.facts(source);
      const bool of_rows = is_rows(unit) && facts.reduces && !facts.contraction && !facts.nested;
      ExprId value = build_formula(raw, graph_, node, source - node.first_output, load.indices, guard);
      // The guard applies to one element. The reductions of its row serve all elements and need no guard.
      if (of_rows && guard != kNoExpr && is_of_indices(raw, guard))
        value = row_axes.without_guard(first, value,
                                       [&](const ExprNode& n) { return n.args[0] == guard && is_inside(raw, n); });
      if (of_rows) value = row_axes.take(first, value, rows_of(load.indices, facts));
      std::map<ExprId, ValueId> inner_reductions;
      // Attention multiplies tiles even if a query has one row: the heads that share its keys.
      if (facts.matmul || (facts.contraction && unit.nested))
        note_operands(raw, first, source, operands, facts.nested || !facts.matmul ? inner_reductions : raw_reductions);
      value = raw.convert(value, load.type);
      // Attention multiplies 16-bit weights, so readers in the same kernel round its result to 16 bits too.
      if (facts.nested && facts.maximum && is_float(load.dtype) && bits(load.dtype) == 16 && !contains(unit, source))
        value = raw.round(value, load.dtype);
      if (operands.contains(id) && is_float(load.dtype)) {
        value = raw.round(value, load.dtype);
        if (raw[value].op == ExprOp::kLoad) operands.insert(value);  // a view: its load may be substituted too
      }
      replaced_by.resize(raw.size(), kNoExpr);
      replaced_by[id] = value;
    }
    replaced_by.resize(raw.size(), kNoExpr);

    Kernel& kernel = built.kernel;
    kernel.exact_steps = round_intermediates_;
    kernel.pool = ExprPool(graph_.symbols);
    for (const NodeId n : nodes_)
      if (members.contains(n)) kernel.nodes.push_back(n);
    ExprCopier copier(raw, kernel.pool);
    copier.replacement = [&](ExprId id) { return replaced_by[id]; };
    copier.finish = [&](ExprId id, ExprId copied) {
      const DType dtype = raw[id].dtype;
      const bool rounds = round_intermediates_ || inlining_.feeds_quantization(raw[id].source);
      if (rounds && !has_bits_of(kernel.pool, copied, dtype)) copied = kernel.pool.round(copied, dtype);
      kernel.named.push_back({copied, raw[id].source});
      return copied;
    };
    copier.drops_units = true;
    copier.rewritten = [&](ExprId id, const ExprCopier::Copied& copied) {
      const ExprNode& n = raw[id];
      if (n.op == ExprOp::kSelect)
        return fold_to_maximum(kernel.pool, copied(n.args[0]), copied(n.args[1]), copied(n.args[2]));
      if (n.op != ExprOp::kEq && n.op != ExprOp::kNe) return kNoExpr;
      return narrow_comparison(kernel.pool, n.op, copied(n.args[0]), copied(n.args[1]));
    };
    std::vector<std::uint32_t> new_axes;
    for (const std::uint32_t a : axes) {
      count_step();
      const IndexExpr extent = raw.extent(a);
      if (extent.is(1)) copier.axis[a] = 0;
      new_axes.push_back(extent.is(1) ? kernel.pool.new_axis(1) : copier.copy_axis(a));
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      count_step();
      KernelOutput output{unit.values[i], graph_.tensor(unit.values[i]), new_axes, copier.copy(outputs[i]), {}};
      output.index = index_of(unit, unit.values[i], [&](std::size_t d) { return IndexExpr::axis(new_axes[d]); });
      for (IndexExpr& e : output.index) e = kernel.pool.simplified(e);
      kernel.outputs.push_back(std::move(output));
    }
    for (const auto& [v, loads] : stored_alongside) {
      count_step();
      KernelOutput output{v, graph_.tensor(v), new_axes, copier.copy(loads[0]), {}};
      for (const IndexExpr& e : raw[loads[0]].indices) {
        output.index.push_back(copier.copy(e));
        for (const Variable a : variables_of(output.index.back()))
          if (a.kind == Variable::Kind::kAxis &&
              std::find(output.axes.begin(), output.axes.end(), a.id) == output.axes.end())
            output.axes.push_back(a.id);
      }
      kernel.outputs.push_back(std::move(output));
    }
    for (const auto& [id, source] : raw_reductions) built.reduction_of.emplace(copier.copy(id), source);
    if (is_rows(unit)) join_nested_reductions(kernel);
    if (!round_intermediates_) round_once(kernel);
    kernel.pool.forget_simplifications();
    return built;
  }

 private:
  static bool has_grown(const std::vector<IndexExpr>& indices) {
    std::size_t size = 0;
    for (const IndexExpr& e : indices) size += index_size(e, kLargestIndices);
    return size > kLargestIndices;
  }

  // Returns whether the value is representable in the 16-bit dtype: such a number, its magnitude, or a maximum of two.
  static bool has_bits_of(const ExprPool& pool, ExprId id, DType dtype, int depth = 4) {
    const ExprNode& n = pool[id];
    if (depth == 0 || (dtype != DType::kFloat16 && dtype != DType::kBFloat16)) return false;
    switch (n.op) {
      case ExprOp::kLoad:
      case ExprOp::kRound:
        return n.dtype == dtype;
      case ExprOp::kNeg:
      case ExprOp::kAbs:
        return has_bits_of(pool, n.args[0], dtype, depth - 1);
      case ExprOp::kMax:
      case ExprOp::kMin:
        return has_bits_of(pool, n.args[0], dtype, depth - 1) && has_bits_of(pool, n.args[1], dtype, depth - 1);
      case ExprOp::kSelect:
        return has_bits_of(pool, n.args[1], dtype, depth - 1) && has_bits_of(pool, n.args[2], dtype, depth - 1);
      case ExprOp::kReduce:
        return (n.reduction == Reduction::kMax || n.reduction == Reduction::kMin) &&
               has_bits_of(pool, n.args[0], dtype, depth - 1);
      default:
        return false;
    }
  }

  // Removes the rounding of an output that nothing else reads: the store rounds to the same dtype.
  static void round_once(Kernel& kernel) {
    const ExprPool& pool = kernel.pool;
    std::vector<bool> is_read(pool.size(), false);
    for (const ExprId id : reachable(pool, roots_of(kernel)))
      for (const ExprId argument : pool[id].args)
        if (argument != kNoExpr) is_read[argument] = true;
    for (KernelOutput& output : kernel.outputs) {
      count_step();
      const ExprNode& n = pool[output.expr];
      if (n.op == ExprOp::kRound && n.type == ScalarType::kFloat32 && is_float(n.dtype) &&
          n.dtype == output.type.dtype && !is_read[output.expr])
        output.expr = n.args[0];
    }
  }

  // Returns whether every reduction of the unit reduces a row.
  static bool is_rows(const KernelUnit& unit) { return !unit.matmul && !unit.vector_contraction && !unit.nested; }

  // Returns the indices of a load that the reductions of its formula depend on.
  static std::vector<IndexExpr> rows_of(const std::vector<IndexExpr>& indices, const FormulaFacts& facts) {
    std::vector<IndexExpr> rows;
    for (std::size_t d = 0; d < indices.size(); ++d)
      if (facts.rows[d]) rows.push_back(indices[d]);
    return rows;
  }

  // Returns whether a load of a reduction's result can ignore its guard. The guard then only saves reads (elements that
  // tril drops): its reader selects too. Reductions without a guard have better forms: operands of a product can be
  // copied, and a row's sum is the same for all its elements. Guards on loaded values (does this row have a matrix?)
  // and guards against reads out of bounds (padding) stay.
  bool reads_unguarded(const ExprPool& raw, ValueId source, const ExprNode& load) const {
    if (load.args[0] == kNoExpr || !inlining_.facts(source)->reduces) return false;
    return is_of_indices(raw, load.args[0]) && is_inside(raw, load);
  }

  // Returns whether the load is within its tensor even without a guard.
  bool is_inside(const ExprPool& raw, const ExprNode& load) const {
    const Shape& shape = graph_.tensor(load.source).shape;
    for (std::size_t d = 0; d < shape.size(); ++d)
      if (!proves_nonnegative(load.indices[d], raw.bounds()) || !proves_less(load.indices[d], shape[d], raw.bounds()))
        return false;
    return true;
  }

  // Collects the loads of 16 bits in the reductions of a contraction's formula, which starts at `first`. Those operands
  // are rounded to their dtype, as they would be in memory, so that tensor cores can multiply them.
  static void note_operands(const ExprPool& raw, ExprId first, ValueId source, std::set<ExprId>& operands,
                            std::map<ExprId, ValueId>& reductions) {
    std::set<ExprId> inner;
    for (auto id = static_cast<ExprId>(raw.size()); id-- > first;) {  // outer reductions before inner ones
      if (raw[id].op != ExprOp::kReduce || inner.contains(id)) continue;
      reductions.emplace(id, source);
      for (const ExprId under : reachable(raw, std::span(raw[id].args.data(), 1))) {
        count_step();
        if (raw[under].op == ExprOp::kLoad && bits(raw[under].dtype) == 16) operands.insert(under);
        if (raw[under].op == ExprOp::kReduce) inner.insert(under);
      }
    }
  }

  // Returns the index of a value at a point of the unit's space.
  template <typename IndexAt>
  std::vector<IndexExpr> index_of(const KernelUnit& unit, ValueId v, IndexAt index_at) const {
    if (unit.reshaped.contains(v)) return index_of_reshaped(unit, v, index_at);
    std::vector<IndexExpr> index;
    const auto smaller = unit.smaller.find(v);
    for (std::size_t d = 0; d < graph_.tensor(v).shape.size(); ++d) {
      count_step();
      const int at = smaller == unit.smaller.end() ? static_cast<int>(d) : smaller->second[d];
      index.push_back(at == kUnitDim ? IndexExpr(0) : index_at(static_cast<std::size_t>(at)));
    }
    if (unit.part) index[unit.part->dim] += unit.part->offset;
    return index;
  }

  // Returns the index of a value with as many elements as the space, in the same order.
  template <typename IndexAt>
  std::vector<IndexExpr> index_of_reshaped(const KernelUnit& unit, ValueId v, IndexAt index_at) const {
    const Shape &space = graph_.tensor(unit.space).shape, &shape = graph_.tensor(v).shape;
    IndexExpr flat = 0;
    for (std::size_t d = 0; d < space.size(); ++d) flat = flat * space[d] + index_at(d);
    std::vector<IndexExpr> index(shape.size());
    for (std::size_t d = shape.size(); d-- > 0; flat = floor_div(flat, shape[d]))
      index[d] = d == 0 ? flat : floor_mod(flat, shape[d]);
    return index;
  }

  // Returns an expression for a load of a constant whose elements are all equal, or linear in their indices (positions,
  // classes). Such a constant needs no memory. Returns kNoExpr for other constants.
  ExprId literal_of(ExprPool& pool, const Constant& constant, const ExprNode& load) const {
    const std::optional<Scalar> number = uniform_value(constant);
    if (!number) return of_places(pool, constant, load);
    const auto literal = [&](const Scalar& s) {
      return is_float(load.type) ? pool.constant(load.type, s.as_double()) : pool.constant(load.type, s.integer);
    };
    if (load.args[0] == kNoExpr) return literal(*number);
    return pool.select(load.args[0], literal(*number), literal(Scalar{number->category, 0, 0.0}));
  }

  ExprId of_places(ExprPool& pool, const Constant& constant, const ExprNode& load) const {
    const std::optional<Progression> progression = progression_of(graph_, constant);
    if (!progression) return kNoExpr;
    IndexExpr at = progression->start;
    for (std::size_t d = 0; d < load.indices.size(); ++d) at += load.indices[d] * progression->steps[d];
    const ExprId element = pool.convert(pool.index(at), load.type);
    if (load.args[0] == kNoExpr) return element;
    return pool.select(load.args[0], element, pool.convert(pool.index(0), load.type));
  }

  const Graph& graph_;
  const std::vector<NodeId>& nodes_;
  const Inlining& inlining_;
  bool round_intermediates_;
};

}  // namespace

AskedOfInlining ask_inlining(const Graph& graph, const Inlining& inlining, const KernelUnit& unit, ValueId v) {
  const ValueId source = resolve_tuple(graph, v);
  const bool alongside = inlining.stored_alongside(source) || !inlining.stored_alongside_from(source).empty();
  return {v, is_substituted(inlining, unit, source), inlining.feeds_quantization(v), alongside};
}

std::size_t most_expressions(const Graph& graph, const std::vector<NodeId>& nodes) {
  std::size_t most = kMostExprs;
  for (const NodeId n : nodes) most += kExprsOfOperand * graph.nodes[n].inputs.size();
  return most;
}

BuiltKernel build_kernel(const Graph& graph, const std::vector<NodeId>& nodes, const Inlining& inlining,
                         const KernelUnit& unit, bool round_intermediates) {
  return Building(graph, nodes, inlining, round_intermediates).run(unit);
}

}  // namespace fusec
