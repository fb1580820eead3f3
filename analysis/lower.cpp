#include "analysis/lower.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "analysis/copy_expr.h"
#include "analysis/fusion_facts.h"
#include "ir/constant_data.h"
#include "ir/error.h"
#include "ir/type.h"

namespace fusec {
namespace {

// Beyond these an intermediate is stored rather than computed anew. Costs count operations (a function is 8).
constexpr int kCheapOperand = 8;  // of a matrix product's operand: computed once for every tile
constexpr int kCheapWindow = 64;  // times the size of the window that needs it
constexpr std::int64_t kLongRow = 1 << 16, kFewRows = 32;
constexpr std::size_t kMostCopies = 24;
constexpr std::size_t kMostExprs = 30000;
constexpr std::size_t kMostOutputs = 8;

// What a value is once the formulas before it are put into it.
struct Inlined {
  FormulaFacts facts;
  int cost = 0;
  bool reduces = false, contraction = false, nested = false;
  std::vector<bool> rows;
  ValueId origin = kNone;  // the value whose formula has the contraction (or nested reductions)
};

class GroupLowering {
 public:
  GroupLowering(const Graph& graph, const std::vector<NodeId>& nodes, const std::vector<ValueId>& outputs,
                bool round_intermediates)
      : graph_(graph), nodes_(nodes), round_intermediates_(round_intermediates) {
    for (const NodeId n : nodes)
      for (std::uint32_t i = 0; i < graph.nodes[n].output_count; ++i) inside_.insert(graph.nodes[n].first_output + i);
    for (const ValueId v : outputs) needed_.insert(v);
  }

  std::vector<LoweredUnit> run() {
    find_needed();
    find_facts();
    for (;;) {
      decide_stores();
      form_units();
      std::optional<std::vector<LoweredUnit>> units = build_units();
      if (units) return std::move(*units);
    }
  }

 private:
  struct Unit {
    LoweredUnit::Kind kind = LoweredUnit::Kind::kKernel;
    std::vector<ValueId> values;
    NodeId node = kNone;
    bool reduces = false, contraction = false, nested = false;
    std::vector<bool> rows;
    std::set<ValueId> reads;
  };

  const Node& producer(ValueId v) const { return graph_.nodes[graph_.value(v).producer]; }
  bool has_formula(ValueId v) const { return static_cast<bool>(producer(v).op->formula); }
  std::size_t result_index(ValueId v) const { return v - producer(v).first_output; }
  bool inside(ValueId v) const { return inside_.contains(v); }
  bool in_memory(ValueId v) const { return !inside(v) || stored_.contains(v); }

  // Values that the outputs need at all, from the last node to the first.
  void find_needed() {
    for (auto it = nodes_.rbegin(); it != nodes_.rend(); ++it) {
      const Node& node = graph_.nodes[*it];
      bool wanted = false;
      for (std::uint32_t i = 0; i < node.output_count; ++i) wanted = wanted || used_.contains(node.first_output + i);
      for (std::uint32_t i = 0; i < node.output_count; ++i) wanted = wanted || needed_.contains(node.first_output + i);
      if (!wanted) continue;
      wanted_.insert(*it);
      for (const ValueId v : node.inputs)
        if (v != kNone) used_.insert(resolve_tuple(graph_, v));
      for (const ValueId v : node.inputs)
        if (v != kNone) used_.insert(v);
    }
    for (const ValueId v : needed_)
      if (inside(v) && graph_.value(v).producer != kNone) must_store_.insert(v);
    for (const NodeId n : wanted_) {
      const Node& node = graph_.nodes[n];
      if (node.op->formula || node.op->special == Special::kTuple) continue;
      for (const ValueId v : node.inputs)
        if (v != kNone && inside(resolve_tuple(graph_, v))) must_store_.insert(resolve_tuple(graph_, v));
      for (std::uint32_t i = 0; i < node.output_count; ++i) must_store_.insert(node.first_output + i);
    }
  }

  void find_facts() {
    for (const NodeId n : nodes_) {
      const Node& node = graph_.nodes[n];
      if (!wanted_.contains(n) || !node.op->formula) continue;
      for (std::uint32_t i = 0; i < node.output_count; ++i) {
        const ValueId v = node.first_output + i;
        if (used_.contains(v) || needed_.contains(v)) facts_[v] = formula_facts(graph_, node, i);
      }
    }
  }

  // A view of something in memory is memory.
  std::optional<ValueId> alias_of(ValueId v) const {
    const Node& node = producer(v);
    if (node.op->special == Special::kTuple) {
      const ValueId field = resolve_tuple(graph_, v);
      if (field != v && in_memory(field)) return field;
      return std::nullopt;
    }
    if (!node.op->view || node.inputs.empty() || node.inputs[0] == kNone) return std::nullopt;
    const ValueId operand = resolve_tuple(graph_, node.inputs[0]);
    const Value::Kind kind = graph_.value(operand).kind;
    if (kind == Value::Kind::kNumber || kind == Value::Kind::kDim || !in_memory(operand)) return std::nullopt;
    if (graph_.tensor(operand).dtype != graph_.tensor(v).dtype) return std::nullopt;
    return operand;
  }

  // Which values are stored: in rounds, since storing one changes what its consumers are.
  void decide_stores() {
    stored_ = must_store_;
    for (bool changed = true; changed;) {
      const std::size_t before = stored_.size();
      inlined_.clear();
      for (const NodeId n : nodes_) {
        if (!wanted_.contains(n)) continue;
        const Node& node = graph_.nodes[n];
        for (std::uint32_t i = 0; i < node.output_count; ++i) {
          const ValueId v = node.first_output + i;
          if (node.op->formula) {
            const auto it = facts_.find(v);
            if (it != facts_.end()) {
              if (!stored_.contains(v) && alias_of(v)) stored_.insert(v);
              inlined_[v] = combine(v, it->second, graph_.tensor(v).shape);
            }
          } else if (node.op->special == Special::kTuple && !graph_.type(v).is_tuple && !stored_.contains(v)) {
            const ValueId field = resolve_tuple(graph_, v);
            if (field != v && inside(field) && !stored_.contains(field)) stored_.insert(field);
            stored_.insert(v);
          }
        }
      }
      changed = stored_.size() != before;
    }
  }

  // The value with its operands' formulas put in; operands for which that will not do become stored.
  Inlined combine(ValueId value, const FormulaFacts& facts, const Shape& shape) {
    Inlined mine{facts, facts.cost, facts.reduces, facts.contraction, facts.nested, facts.rows, kNone};
    if (facts.contraction || facts.nested) mine.origin = value;
    bool rows_known = facts.reduces;
    for (const LoadFact& load : facts.loads) {
      const ValueId v = resolve_tuple(graph_, load.source);
      if (!inside(v) || stored_.contains(v)) continue;
      const auto it = inlined_.find(v);
      if (it == inlined_.end()) continue;
      const Inlined& operand = it->second;
      if (!may_inline(operand, load, v, mine, rows_known, shape)) {
        stored_.insert(v);
        continue;
      }
      mine.cost += operand.cost;
      if (operand.reduces) {
        mine.rows = mapped_rows(operand, load, v, shape);
        rows_known = true;
        mine.reduces = true;
        mine.contraction = mine.contraction || operand.contraction;
        mine.nested = mine.nested || operand.nested;
        if (operand.origin != kNone) mine.origin = operand.origin;
      }
    }
    return mine;
  }

  std::vector<bool> mapped_rows(const Inlined& operand, const LoadFact& load, ValueId v, const Shape& shape) const {
    std::vector<bool> rows(shape.size(), false);
    const Shape& operand_shape = graph_.tensor(v).shape;
    for (std::size_t d = 0; d < operand.rows.size(); ++d)
      if (operand.rows[d] && !operand_shape[d].is(1) && load.dims[d] >= 0)
        rows[static_cast<std::size_t>(load.dims[d])] = true;
    return rows;
  }

  bool may_inline(const Inlined& operand, const LoadFact& load, ValueId v, const Inlined& consumer, bool rows_known,
                  const Shape& shape) const {
    if (!operand.reduces) {
      if (load.reused && operand.cost > kCheapOperand) return false;
      return load.identity || operand.cost * load.times <= kCheapWindow;
    }
    if (operand.contraction || operand.nested)
      return load.identity && (!consumer.reduces || consumer.origin == operand.origin);
    if (consumer.contraction || consumer.nested) return false;
    const Shape& operand_shape = graph_.tensor(v).shape;
    for (std::size_t d = 0; d < operand.rows.size(); ++d)
      if (operand.rows[d] && !operand_shape[d].is(1) && load.dims[d] < 0) return false;
    const std::vector<bool> rows = mapped_rows(operand, load, v, shape);
    return (!rows_known || rows == consumer.rows) && enough_rows(rows, shape);
  }

  // A team of threads makes all columns of a row: few long rows would leave most of the device idle.
  bool enough_rows(const std::vector<bool>& rows, const Shape& shape) const {
    IndexExpr row_count = 1, columns = 1;
    for (std::size_t d = 0; d < shape.size(); ++d) (rows[d] ? row_count : columns) *= shape[d];
    return value_at_hint(columns, graph_.symbols) <= kLongRow || value_at_hint(row_count, graph_.symbols) >= kFewRows;
  }

  // --- units

  // The stored values that a stored value's expression loads, and those of one unit that would be put in instead.
  std::set<ValueId> reads_of(ValueId v, const Unit* together) const {
    std::set<ValueId> reads, seen;
    std::vector<ValueId> stack{v};
    while (!stack.empty()) {
      const ValueId at = stack.back();
      stack.pop_back();
      const auto it = facts_.find(at);
      if (it == facts_.end()) continue;
      for (const LoadFact& load : it->second.loads) {
        const ValueId source = resolve_tuple(graph_, load.source);
        const bool put_in = inside(source) && (!stored_.contains(source) || (together && contains(*together, source)));
        if (!put_in) {
          reads.insert(source);
        } else if (seen.insert(source).second) {
          stack.push_back(source);
        }
      }
    }
    return reads;
  }

  static bool contains(const Unit& unit, ValueId v) {
    return std::find(unit.values.begin(), unit.values.end(), v) != unit.values.end();
  }

  // May `v` be made by the kernel of `unit`, reading what it makes from registers?
  bool may_join(const Unit& unit, ValueId v, const std::set<ValueId>& reads) const {
    if (no_sharing_ || unit.kind != LoweredUnit::Kind::kKernel || unit.values.size() >= kMostOutputs) return false;
    if (graph_.tensor(unit.values[0]).shape != graph_.tensor(v).shape) return false;
    const Inlined& mine = inlined_.at(v);
    if (mine.contraction || mine.nested || unit.contraction || unit.nested) return false;
    if (mine.reduces && unit.reduces && mine.rows != unit.rows) return false;
    // Rows that are all of the space leave nothing to share.
    bool reads_unit = false, shares = false;
    for (const ValueId r : reads) {
      reads_unit = reads_unit || contains(unit, r);
      shares = shares || unit.reads.contains(r);
    }
    if (!reads_unit) return shares && mine.reduces == unit.reduces;
    // What is read of the unit is read at the same index, or is cheap enough to compute anew.
    return reads_are_simple(v, unit, mine);
  }

  bool reads_are_simple(ValueId v, const Unit& unit, const Inlined& mine) const {
    std::set<ValueId> seen;
    std::vector<std::pair<ValueId, bool>> stack{{v, true}};  // value, reached at the same index
    while (!stack.empty()) {
      const auto [at, same] = stack.back();
      stack.pop_back();
      for (const LoadFact& load : facts_.at(at).loads) {
        const ValueId source = resolve_tuple(graph_, load.source);
        if (!inside(source)) continue;
        const bool still_same = same && load.identity;
        if (contains(unit, source)) {
          const Inlined& other = inlined_.at(source);
          if (!still_same && (other.reduces || load.reused || load.times > 1 || other.cost > kCheapWindow))
            return false;
          if (!still_same && !mine.reduces) return false;
        } else if (!stored_.contains(source) && seen.insert(source).second) {
          stack.push_back({source, still_same});
        }
      }
    }
    return true;
  }

  void form_units() {
    units_.clear();
    std::map<ValueId, std::size_t> made_by;
    for (const NodeId n : nodes_) {
      if (!wanted_.contains(n)) continue;
      const Node& node = graph_.nodes[n];
      if (!node.op->formula && node.op->special != Special::kTuple) {
        Unit unit{.kind = LoweredUnit::Kind::kSpecial, .values = {}, .node = n};
        for (std::uint32_t i = 0; i < node.output_count; ++i) {
          unit.values.push_back(node.first_output + i);
          made_by[node.first_output + i] = units_.size();
        }
        units_.push_back(std::move(unit));
        continue;
      }
      for (std::uint32_t i = 0; i < node.output_count; ++i) {
        const ValueId v = node.first_output + i;
        if (!stored_.contains(v)) continue;
        if (alias_of(v)) {
          made_by[v] = units_.size();
          units_.push_back({.kind = LoweredUnit::Kind::kAlias, .values = {v}, .node = n});
        } else if (node.op->formula) {
          made_by[v] = place(v, made_by);
        }
      }
    }
  }

  std::size_t place(ValueId v, const std::map<ValueId, std::size_t>& made_by) {
    const std::set<ValueId> reads = reads_of(v, nullptr);
    std::size_t after = 0;  // units before this one must not take it
    for (const ValueId r : reads)
      if (const auto it = made_by.find(r); it != made_by.end()) after = std::max(after, it->second);
    // The last units first; far back there is little to share and much to search.
    const std::size_t first = std::max(after, units_.size() > 8 ? units_.size() - 8 : 0);
    for (std::size_t u = units_.size(); u-- > first;) {
      // All else that it reads must be there before that unit runs.
      bool ready = true;
      for (const ValueId r : reads)
        if (const auto it = made_by.find(r); it != made_by.end() && it->second >= u && !contains(units_[u], r))
          ready = false;
      if (!ready || !may_join(units_[u], v, reads)) continue;
      Unit& unit = units_[u];
      unit.values.push_back(v);
      const std::set<ValueId> now = reads_of(v, &unit);
      unit.reads.insert(now.begin(), now.end());
      if (inlined_.at(v).reduces) {
        unit.reduces = true;
        unit.rows = inlined_.at(v).rows;
      }
      return u;
    }
    const Inlined& mine = inlined_.at(v);
    units_.push_back({.values = {v},
                      .reduces = mine.reduces,
                      .contraction = mine.contraction,
                      .nested = mine.nested,
                      .rows = mine.rows,
                      .reads = reads});
    return units_.size() - 1;
  }

  // --- expressions

  // Nothing where some value would be computed too many times over: it is stored now, and all begins anew.
  std::optional<std::vector<LoweredUnit>> build_units() {
    std::vector<LoweredUnit> result;
    for (const Unit& unit : units_) {
      LoweredUnit lowered;
      lowered.kind = unit.kind;
      lowered.node = unit.node;
      if (unit.kind == LoweredUnit::Kind::kAlias) {
        lowered.value = unit.values[0];
        lowered.of = *alias_of(unit.values[0]);
      } else if (unit.kind == LoweredUnit::Kind::kKernel) {
        std::optional<Kernel> kernel = build_kernel(unit);
        if (!kernel) return std::nullopt;
        lowered.kernel = std::move(*kernel);
      }
      result.push_back(std::move(lowered));
    }
    if (store_repeated_reductions(result)) return std::nullopt;
    return result;
  }

  // A reduction that several kernels would compute is stored instead.
  bool store_repeated_reductions(const std::vector<LoweredUnit>& units) {
    std::set<NodeId> seen;
    bool changed = false;
    for (const LoweredUnit& unit : units)
      for (const NodeId n : unit.kernel.nodes) {
        if (seen.insert(n).second) continue;
        const Node& node = graph_.nodes[n];
        for (std::uint32_t i = 0; i < node.output_count; ++i) {
          const auto it = facts_.find(node.first_output + i);
          if (it != facts_.end() && it->second.reduces) changed |= must_store_.insert(it->first).second;
        }
      }
    return changed;
  }

  bool put_in(const Unit& unit, ValueId v) const {
    return inside(v) && has_formula(v) && (!stored_.contains(v) || contains(unit, v));
  }

  std::optional<Kernel> build_kernel(const Unit& unit) {
    // First the formulas as they are, each load of a value that is put in noted with the formula that replaces it.
    ExprPool raw(graph_.symbols);
    std::vector<IndexExpr> index;
    std::vector<std::uint32_t> axes;
    for (const Dim& extent : graph_.tensor(unit.values[0]).shape) {
      axes.push_back(raw.new_axis(extent));
      index.push_back(IndexExpr::axis(axes.back()));
    }
    std::vector<ExprId> outputs;
    for (const ValueId v : unit.values) outputs.push_back(raw.load(v, graph_.tensor(v).dtype, index));
    std::vector<ExprId> replaced_by(raw.size(), kNoExpr);
    std::map<ValueId, std::size_t> copies;
    std::set<NodeId> members;
    for (ExprId id = 0; id < raw.size(); ++id) {
      replaced_by.resize(raw.size(), kNoExpr);
      const ExprNode load = raw[id];
      if (load.op != ExprOp::kLoad) continue;
      const ValueId source = resolve_tuple(graph_, load.source);
      if (const Constant* constant = graph_.constant_of(source)) replaced_by[id] = literal_of(raw, *constant, load);
      if (!put_in(unit, source)) continue;
      const Node& node = producer(source);
      members.insert(graph_.value(source).producer);
      if ((++copies[source] > kMostCopies || raw.size() > kMostExprs) && !give_up_inlining(unit, source, copies))
        throw InternalError("an expression grows without end");
      if (copies[source] > kMostCopies || raw.size() > kMostExprs) return std::nullopt;
      const ExprId value = build_formula(raw, graph_, node, result_index(source), load.indices, load.args[0]);
      replaced_by.resize(raw.size(), kNoExpr);
      replaced_by[id] = raw.convert(value, load.type);
    }
    replaced_by.resize(raw.size(), kNoExpr);

    Kernel kernel;
    kernel.exact_steps = round_intermediates_;
    kernel.pool = ExprPool(graph_.symbols);
    for (const NodeId n : nodes_)
      if (members.contains(n)) kernel.nodes.push_back(n);
    ExprCopier copier(raw, kernel.pool);
    copier.replacement = [&](ExprId id) { return replaced_by[id]; };
    copier.finish = [&](ExprId id, ExprId copied) {
      const DType dtype = raw[id].dtype;
      if (round_intermediates_) copied = kernel.pool.round(copied, dtype);
      kernel.named.push_back({copied, raw[id].source});
      return copied;
    };
    std::vector<std::uint32_t> new_axes;
    for (const std::uint32_t a : axes) new_axes.push_back(copier.copy_axis(a));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      KernelOutput output{unit.values[i], graph_.tensor(unit.values[i]), new_axes, copier.copy(outputs[i]), {}};
      for (const std::uint32_t a : new_axes) output.index.push_back(IndexExpr::axis(a));
      kernel.outputs.push_back(std::move(output));
    }
    return kernel;
  }

  // What is loaded of a constant whose elements are all one number needs no memory; kNoExpr for other constants.
  static ExprId literal_of(ExprPool& pool, const Constant& constant, const ExprNode& load) {
    const std::optional<Scalar> number = uniform_value(constant);
    if (!number) return kNoExpr;
    const auto literal = [&](const Scalar& s) {
      return is_float(load.type) ? pool.constant(load.type, s.as_double()) : pool.constant(load.type, s.integer);
    };
    if (load.args[0] == kNoExpr) return literal(*number);
    return pool.select(load.args[0], literal(*number), literal(Scalar{number->category, 0, 0.0}));
  }

  // The value that stands in the kernel most often is stored from now on; or kernels share nothing any more.
  bool give_up_inlining(const Unit& unit, ValueId worst, const std::map<ValueId, std::size_t>& copies) {
    for (const auto& [value, count] : copies)
      if (count > copies.at(worst)) worst = value;
    if (!contains(unit, worst) && must_store_.insert(worst).second) return true;
    for (const auto& [value, count] : copies)
      if (count > 1 && !contains(unit, value) && must_store_.insert(value).second) return true;
    if (no_sharing_) return false;
    no_sharing_ = true;
    return true;
  }

  const Graph& graph_;
  const std::vector<NodeId>& nodes_;
  bool round_intermediates_;
  std::set<ValueId> inside_, needed_, used_, must_store_, stored_;
  std::set<NodeId> wanted_;
  std::map<ValueId, FormulaFacts> facts_;
  std::map<ValueId, Inlined> inlined_;
  std::vector<Unit> units_;
  bool no_sharing_ = false;
};

}  // namespace

ValueId resolve_tuple(const Graph& graph, ValueId value) {
  // get_item(tuple(a, b, ...), i) is the i-th operand; tuples may hold tuples.
  std::vector<std::int64_t> path;
  ValueId at = value;
  while (graph.value(at).kind == Value::Kind::kResult) {
    const Node& node = graph.nodes[graph.value(at).producer];
    if (node.op->special != Special::kTuple) break;
    if (node.op->name == "get_item") {
      path.push_back(graph.attributes(node).integer("index"));
      at = node.inputs.at(0);
    } else {
      if (path.empty()) break;
      std::int64_t i = path.back();
      if (i < 0) i += static_cast<std::int64_t>(node.inputs.size());
      path.pop_back();
      at = node.inputs.at(static_cast<std::size_t>(i));
    }
  }
  return path.empty() ? at : value;
}

std::vector<LoweredUnit> lower_group(const Graph& graph, const std::vector<NodeId>& nodes,
                                     const std::vector<ValueId>& outputs, bool round_intermediates) {
  return GroupLowering(graph, nodes, outputs, round_intermediates).run();
}

}  // namespace fusec
