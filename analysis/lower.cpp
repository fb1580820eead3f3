#include "analysis/lower.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "analysis/concat_parts.h"
#include "analysis/copy_expr.h"
#include "analysis/inlining.h"
#include "analysis/kernel_forms.h"
#include "analysis/shared_space.h"
#include "analysis/side_by_side.h"
#include "ir/constant_data.h"
#include "ir/error.h"
#include "ir/type.h"

namespace fusec {
namespace {

// Beyond these a value is stored rather than copied into an expression once more.
constexpr std::size_t kMostCopies = 24;
constexpr std::size_t kMostExprs = 30000;
constexpr std::size_t kMostOutputs = 8;

class GroupLowering {
 public:
  GroupLowering(const Graph& graph, const std::vector<NodeId>& nodes, const std::vector<ValueId>& outputs,
                bool round_intermediates)
      : graph_(graph), nodes_(nodes), round_intermediates_(round_intermediates), inlining_(graph, nodes, outputs) {}

  // Of outputs that are views: what they are views of is stored from now on, and they are that memory. False where that
  // changes nothing.
  bool store_below_views(const std::vector<ValueId>& outputs) {
    bool changed = false;
    for (const ValueId v : outputs) {
      ValueId below = v;
      while (const std::optional<ValueId> operand = viewed(below)) below = *operand;
      if (below != v) changed |= inlining_.force_stored(below);
    }
    return changed;
  }

  // From now on a product of which several kernels need different pieces is computed by each of them, and what a concat
  // joins is stored in its place by whoever makes it. False where there is nothing of that kind.
  bool make_pieces_apart(const std::vector<ValueId>& outputs, bool repeated_products) {
    pieces_apart_ = true;
    bool changed = repeated_products;
    for (const ValueId v : outputs) {
      if (!may_be_in_parts(graph_, inlining_, v)) continue;
      inlining_.place_parts_of(*concat_below(graph_, inlining_, v));
      changed = true;
    }
    return changed;
  }
  // Whether a product was stored since several kernels would have computed it.
  bool has_repeated_products() const { return repeated_products_; }

  std::vector<LoweredUnit> run() {
    for (;;) {
      inlining_.decide();
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
    bool reduces = false, contraction = false, vector_product = false, nested = false;
    bool joined = false;  // several contractions, or one that is read at other indices: if its form allows
    std::vector<bool> rows;
    std::set<ValueId> reads;
    ValueId space = kNone;                   // the value whose shape the kernel runs over
    std::map<ValueId, DimsInSpace> smaller;  // values that have an element a row, or other dimensions of extent 1
    std::vector<ValueId> on_trial;           // values that are here only if the kernel is rows throughout
    std::optional<ConcatPart> part;          // of the only value no more than this
  };

  struct Built {
    Kernel kernel;
    std::map<ExprId, ValueId> reduction_of;  // the reductions of contractions: of which value's formula
    std::map<ValueId, std::size_t> copies;   // how often each value's formula stands in it, at different indices
  };

  const Node& producer(ValueId v) const { return graph_.nodes[graph_.value(v).producer]; }

  // The value made by this group of which `v` is a view.
  std::optional<ValueId> viewed(ValueId v) const {
    if (!inlining_.inside(v) || !producer(v).op->view || producer(v).op->special != Special::kNone) return std::nullopt;
    const ValueId operand = producer(v).inputs[0];
    if (operand == kNone || !inlining_.facts(operand) || graph_.tensor(operand).dtype != graph_.tensor(v).dtype)
      return std::nullopt;
    return operand;
  }

  std::size_t result_index(ValueId v) const { return v - producer(v).first_output; }

  // --- units

  // What lies between a concat and an output may have to be stored for other reasons: then that is made in parts, and
  // the output reads it.
  bool made_in_parts(ValueId v) const {
    if (!inlining_.any_in_parts()) return false;
    const std::optional<ValueId> concat = concat_below(graph_, inlining_, v);
    return concat && inlining_.joined_in_parts(*concat);
  }

  // A unit for each operand of the concat below: the value at the operand's place.
  void form_parts(ValueId whole) {
    for (ConcatPart& part : parts_of(graph_, inlining_, whole)) {
      Unit unit{.values = {whole}, .space = part.operand, .smaller = {}};
      if (inlining_.inside(part.operand) && !inlining_.stored(part.operand) && inlining_.facts(part.operand)) {
        const Inlined& mine = inlining_.inlined(part.operand);
        unit.reduces = mine.reduces;
        unit.contraction = mine.contraction;
        unit.vector_product = mine.vector_product;
        unit.nested = mine.nested;
        unit.joined = mine.joined;
        unit.rows = mine.rows;
      }
      unit.part = std::move(part);
      units_.push_back(std::move(unit));
    }
  }

  // The stored values that a stored value's expression loads, and those of one unit that would be put in instead.
  std::set<ValueId> reads_of(ValueId v, const Unit* together) const {
    std::set<ValueId> reads, seen;
    std::vector<ValueId> stack{v};
    while (!stack.empty()) {
      const ValueId at = stack.back();
      stack.pop_back();
      const FormulaFacts* facts = inlining_.facts(at);
      if (!facts) continue;
      for (const LoadFact& load : facts->loads) {
        const ValueId source = resolve_tuple(graph_, load.source);
        const bool put_in =
            inlining_.inside(source) && (!inlining_.stored(source) || (together && contains(*together, source)));
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
    if (no_sharing_ || unit.kind != LoweredUnit::Kind::kKernel || unit.values.size() >= kMostOutputs || unit.part)
      return false;
    if (!unit.on_trial.empty() || graph_.tensor(unit.space).shape != graph_.tensor(v).shape) return false;
    const Inlined& mine = inlining_.inlined(v);
    if (mine.nested || unit.nested) return false;
    if (mine.contraction || unit.contraction) {
      if (inlining_.products_apart() || alone_.contains(v)) return false;
      if (unit.contraction && mine.reduces && !mine.contraction) return may_reduce_rows_of(unit, v, reads);
      if (mine.reduces != mine.contraction || unit.reduces != unit.contraction) return false;
    } else if (mine.reduces && unit.reduces && mine.rows != unit.rows) {
      return reduces_only_row(unit, mine) && !inlining_.products_apart() && !alone_.contains(v) &&
             may_reduce_rows_of(unit, v, reads);
    }
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

  // Of a product of one row: reductions of that row are no products themselves.
  static bool reduces_only_row(const Unit& unit, const Inlined& v) {
    return unit.vector_product && v.reduces && !v.vector_product && !v.contraction;
  }

  // Does `v` reduce rows of the unit's products, short enough to be in one block?
  bool may_reduce_rows_of(const Unit& unit, ValueId v, const std::set<ValueId>& reads) const {
    return std::ranges::any_of(reads, [&](ValueId r) {
      return contains(unit, r) && inlining_.may_reduce(inlining_.inlined(r), r, inlining_.inlined(v));
    });
  }

  // May `v`, though of another shape or reading the unit's rows elsewhere, be made by its kernel, if that will be rows
  // throughout?
  bool may_try_rows(const Unit& unit, ValueId v, const std::set<ValueId>& reads) const {
    if (no_sharing_ || unit.kind != LoweredUnit::Kind::kKernel || unit.values.size() >= kMostOutputs || unit.part)
      return false;
    if (not_rows_.contains(v)) return false;
    const Inlined& mine = inlining_.inlined(v);
    if (mine.nested || unit.nested || (!mine.reduces && !unit.reduces)) return false;
    const bool products = mine.contraction || unit.contraction;
    if (reduces_only_row(unit, mine) && (inlining_.products_apart() || alone_.contains(v))) return false;
    if (products && (inlining_.reduced_products().empty() || inlining_.products_apart() || alone_.contains(v)))
      return false;
    bool together = false;
    for (const ValueId r : reads) {
      together = together || contains(unit, r) || unit.reads.contains(r);
      if (contains(unit, r) && inlining_.inlined(r).cost > kCheapWindow) return false;
    }
    if (!together) return false;
    return graph_.tensor(unit.space).shape == graph_.tensor(v).shape ||
           dims_in_space(graph_, inlining_, v, unit.space) || dims_in_space(graph_, inlining_, unit.space, v);
  }

  // Where `v`, new in the unit, runs in its space; a larger value makes a larger space.
  void find_place(Unit& unit, ValueId v) const {
    if (graph_.tensor(unit.space).shape == graph_.tensor(v).shape) return;
    if (auto dims = dims_in_space(graph_, inlining_, v, unit.space)) {
      unit.smaller[v] = std::move(*dims);
      return;
    }
    const DimsInSpace dims = *dims_in_space(graph_, inlining_, unit.space, v);
    for (const ValueId old : unit.values) {
      DimsInSpace& place = unit.smaller[old];
      if (place.empty())
        for (std::size_t d = 0; d < graph_.tensor(old).shape.size(); ++d) place.push_back(static_cast<int>(d));
      for (int& d : place) d = d == kUnitDim ? kUnitDim : dims[static_cast<std::size_t>(d)];
    }
    unit.space = v;
  }

  bool reads_are_simple(ValueId v, const Unit& unit, const Inlined& mine) const {
    std::set<ValueId> seen;
    std::vector<std::pair<ValueId, bool>> stack{{v, true}};  // value, reached at the same index
    while (!stack.empty()) {
      const auto [at, same] = stack.back();
      stack.pop_back();
      for (const LoadFact& load : inlining_.facts(at)->loads) {
        const ValueId source = resolve_tuple(graph_, load.source);
        if (!inlining_.inside(source)) continue;
        const bool still_same = same && load.identity;
        if (contains(unit, source)) {
          const Inlined& other = inlining_.inlined(source);
          if (!still_same && (other.reduces || load.reused || load.times > 1 || other.cost > kCheapWindow))
            return false;
          if (!still_same && !mine.reduces) return false;
        } else if (!inlining_.stored(source) && seen.insert(source).second) {
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
      if (!inlining_.wanted(n)) continue;
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
        if (!inlining_.stored(v)) continue;
        if (inlining_.alias_of(v)) {
          made_by[v] = units_.size();
          units_.push_back({.kind = LoweredUnit::Kind::kAlias, .values = {v}, .node = n});
        } else if (made_in_parts(v)) {
          form_parts(v);
          made_by[v] = units_.size() - 1;
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
      if (!ready) continue;
      const bool joins = may_join(units_[u], v, reads);
      if (!joins && !may_try_rows(units_[u], v, reads)) continue;
      Unit& unit = units_[u];
      if (!joins) {
        find_place(unit, v);
        unit.on_trial.push_back(v);
      }
      unit.values.push_back(v);
      const std::set<ValueId> now = reads_of(v, &unit);
      unit.reads.insert(now.begin(), now.end());
      unit.joined = unit.joined || unit.contraction || inlining_.inlined(v).contraction ||
                    inlining_.inlined(v).joined || reduces_only_row(unit, inlining_.inlined(v));
      unit.contraction = unit.contraction || inlining_.inlined(v).contraction;
      unit.vector_product = unit.vector_product || inlining_.inlined(v).vector_product;
      if (inlining_.inlined(v).reduces) {
        unit.reduces = true;
        unit.rows = inlining_.inlined(v).rows;
      }
      return u;
    }
    const Inlined& mine = inlining_.inlined(v);
    units_.push_back({.values = {v},
                      .reduces = mine.reduces,
                      .contraction = mine.contraction,
                      .vector_product = mine.vector_product,
                      .nested = mine.nested,
                      .joined = mine.joined,
                      .rows = mine.rows,
                      .reads = reads,
                      .space = v,
                      .smaller = {}});
    return units_.size() - 1;
  }

  // --- expressions

  // Nothing where some value would be computed too many times over: it is stored now, and all begins anew.
  std::optional<std::vector<LoweredUnit>> build_units() {
    std::vector<LoweredUnit> result;
    copies_in_.clear();
    for (const Unit& unit : units_) {
      LoweredUnit lowered;
      lowered.kind = unit.kind;
      lowered.node = unit.node;
      if (unit.kind == LoweredUnit::Kind::kAlias) {
        lowered.value = unit.values[0];
        lowered.of = *inlining_.alias_of(unit.values[0]);
      } else if (unit.kind == LoweredUnit::Kind::kKernel) {
        std::optional<Built> built = build_kernel(unit);
        if (!built) return std::nullopt;
        const bool streams = std::ranges::any_of(
            unit.values, [&](ValueId v) { return put_in(unit, v) && inlining_.inlined(v).streams; });
        if (streams ? !is_attention(unit, built->kernel) : unit.joined && part_joined(unit, *built))
          return std::nullopt;
        if (!unit.on_trial.empty() && !unit.contraction && !is_rows_throughout(built->kernel) &&
            !(unit.vector_product && form_of(built->kernel).form == KernelForm::kRowProduct)) {
          not_rows_.insert(unit.on_trial.back());
          return std::nullopt;
        }
        lowered.kernel = std::move(built->kernel);
        copies_in_[static_cast<std::size_t>(&unit - units_.data())] = std::move(built->copies);
      }
      result.push_back(std::move(lowered));
    }
    if (store_repeated_reductions(result)) return std::nullopt;
    return result;
  }

  // Where values stand inside one another as attention, and the kernel is none, sees to it that they will not next
  // time.
  bool is_attention(const Unit& unit, const Kernel& kernel) {
    std::vector<ValueId> results;
    bool once = true;
    for (const AttentionStream& stream : inlining_.streams()) {
      const NodeId node = graph_.value(stream.result).producer;
      const bool here = std::ranges::any_of(kernel.nodes, [&](NodeId n) {
        return n == node || std::ranges::any_of(stream.inner, [&](ValueId v) { return graph_.value(v).producer == n; });
      });
      if (!here) continue;
      results.push_back(stream.result);
      once = once && elements_at_hint(unit.space) <= elements_at_hint(stream.result);
      for (const ValueId v : stream.beside)
        once = once && std::ranges::any_of(kernel.outputs, [&](const KernelOutput& o) { return o.value == v; });
    }
    if (once && form_of(kernel).form == KernelForm::kAttention) return true;
    for (const ValueId result : results) inlining_.stream_less(result);
    return results.empty();
  }

  // Does it reduce a product of one row as it makes it? As plain rows that would be made anew for each reduction.
  bool reduces_made_rows(const Unit& unit, const Built& built) const {
    const bool reduces_own = std::ranges::any_of(
        unit.values, [&](ValueId v) { return inlining_.inlined(v).reduces && !inlining_.inlined(v).vector_product; });
    return (unit.vector_product && reduces_own) || std::ranges::any_of(inlining_.reduced_products(), [&](ValueId v) {
             return inlining_.inlined(v).vector_product && built.copies.contains(v);
           });
  }

  // Where what was joined has no form of its own, sees to it that it will not be joined next time.
  bool part_joined(const Unit& unit, const Built& built) {
    const FormOfKernel form = form_of(built.kernel);
    if (form.form == KernelForm::kRowProduct) return false;
    const bool has_form =
        unit.contraction ? form.product.has_value() : form.form == KernelForm::kRows && !reduces_made_rows(unit, built);
    std::optional<ValueId> apart;
    if (!has_form && unit.values.size() > 1 && alone_.insert(unit.values.back()).second) return true;
    if (!has_form) {
      // Rows of a product that cannot be reduced where they are: what is reduced is stored.
      bool stored = false;
      for (const ValueId v : inlining_.reduced_products())
        if (built.copies.contains(v) && !contains(unit, v)) stored |= inlining_.force_stored(v);
      if (stored) return true;
    }
    if (!has_form) {
      const auto at = built.reduction_of.find(form.blocking);
      if (at != built.reduction_of.end() && !contains(unit, at->second)) apart = at->second;
    }
    // Each row, each element of a product is to be computed once: what is read at several places is too dear.
    const std::int64_t rows = rows_at_hint(unit.space, unit.rows);
    for (const auto& [value, count] : built.copies) {
      const FormulaFacts& facts = *inlining_.facts(value);
      if (!facts.reduces || contains(unit, value)) continue;
      const bool dear = static_cast<std::int64_t>(count) * rows > rows_at_hint(value, facts.rows);
      if (has_form ? dear : !apart) apart = value;
    }
    if (has_form && !apart) return false;
    if (apart && inlining_.force_stored(*apart)) return true;
    bool fresh = false;
    for (const ValueId v : unit.values) fresh = fresh || alone_.insert(v).second;
    if (!fresh) {
      if (inlining_.products_apart()) throw InternalError("products that are apart stand in one kernel");
      inlining_.keep_products_apart();
    }
    return true;
  }

  std::int64_t elements_at_hint(ValueId v) const {
    return rows_at_hint(v, std::vector<bool>(graph_.tensor(v).shape.size(), true));
  }

  std::int64_t rows_at_hint(ValueId v, const std::vector<bool>& rows) const {
    IndexExpr count = 1;
    const Shape& shape = graph_.tensor(v).shape;
    for (std::size_t d = 0; d < shape.size(); ++d)
      if (rows[d]) count *= shape[d];
    return value_at_hint(count, graph_.symbols);
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
          const ValueId v = node.first_output + i;
          const FormulaFacts* facts = inlining_.facts(v);
          if (!facts || !facts->reduces || (pieces_apart_ && in_pieces(v))) continue;
          repeated_products_ = repeated_products_ || facts->product;
          changed |= inlining_.force_stored(v);
        }
      }
    return changed;
  }

  // Do the kernels that compute this product make no more of its elements together than it has?
  bool in_pieces(ValueId v) const {
    if (!inlining_.facts(v)->product) return false;
    std::int64_t elements = 0;
    for (const auto& [unit, copies] : copies_in_)
      if (const auto it = copies.find(v); it != copies.end())
        elements += static_cast<std::int64_t>(it->second) * elements_at_hint(units_[unit].space);
    return elements <= elements_at_hint(v);
  }

  bool put_in(const Unit& unit, ValueId v) const {
    return inlining_.inside(v) && inlining_.facts(v) && (!inlining_.stored(v) || contains(unit, v));
  }

  // In the formula of a contraction, made of expressions from `first` on: the operands of products, which are rounded
  // to their declared dtype where it has 16 bits, as they would be in memory, so that tensor cores can multiply them.
  static void note_operands(const ExprPool& raw, ExprId first, ValueId source, std::set<ExprId>& operands,
                            std::map<ExprId, ValueId>& reductions) {
    std::set<ExprId> inner;
    for (auto id = static_cast<ExprId>(raw.size()); id-- > first;) {  // those that stand in others after these
      if (raw[id].op != ExprOp::kReduce || inner.contains(id)) continue;
      reductions.emplace(id, source);
      for (const ExprId under : reachable(raw, std::span(raw[id].args.data(), 1))) {
        if (raw[under].op == ExprOp::kLoad && bits(raw[under].dtype) == 16) operands.insert(under);
        if (raw[under].op == ExprOp::kReduce) inner.insert(under);
      }
    }
  }

  std::optional<Built> build_kernel(const Unit& unit) {
    // First the formulas as they are, each load of a value that is put in noted with the formula that replaces it.
    ExprPool raw(graph_.symbols);
    std::vector<IndexExpr> index;
    std::vector<std::uint32_t> axes;
    for (const Dim& extent : graph_.tensor(unit.space).shape) {
      axes.push_back(raw.new_axis(extent));
      index.push_back(IndexExpr::axis(axes.back()));
    }
    std::vector<ExprId> outputs;
    for (const ValueId v : unit.values)
      outputs.push_back(
          raw.load(v, graph_.tensor(v).dtype, index_of(unit, v, [&](std::size_t d) { return index[d]; })));
    std::vector<ExprId> replaced_by(raw.size(), kNoExpr);
    Built built;
    std::map<ValueId, std::size_t>& copies = built.copies;
    std::set<NodeId> members;
    std::set<ExprId> operands;
    std::map<ExprId, ValueId> raw_reductions;
    std::map<ValueId, std::vector<ExprId>> beside;  // values stored on the way: where they are loaded
    for (ExprId id = 0; id < raw.size(); ++id) {
      replaced_by.resize(raw.size(), kNoExpr);
      const ExprNode load = raw[id];
      if (load.op != ExprOp::kLoad) continue;
      const ValueId source = resolve_tuple(graph_, load.source);
      if (const Constant* constant = graph_.constant_of(source)) replaced_by[id] = literal_of(raw, *constant, load);
      if (!put_in(unit, source)) continue;
      if (inlining_.beside(source)) beside[source].push_back(id);
      const Node& node = producer(source);
      members.insert(graph_.value(source).producer);
      if ((++copies[source] > kMostCopies || raw.size() > kMostExprs) && !give_up_inlining(unit, source, copies))
        throw InternalError("an expression grows without end");
      if (copies[source] > kMostCopies || raw.size() > kMostExprs) return std::nullopt;
      const auto first = static_cast<ExprId>(raw.size());
      ExprId value = build_formula(raw, graph_, node, result_index(source), load.indices, load.args[0]);
      const FormulaFacts& facts = *inlining_.facts(source);
      std::map<ExprId, ValueId> inner_reductions;
      if (facts.contraction)
        note_operands(raw, first, source, operands, facts.nested ? inner_reductions : raw_reductions);
      value = raw.convert(value, load.type);
      // What attention made with weights of 16 bits is no finer than that, whatever reads it here.
      if (facts.nested && facts.maximum && is_float(load.dtype) && bits(load.dtype) == 16 && !contains(unit, source))
        value = raw.round(value, load.dtype);
      if (operands.contains(id) && is_float(load.dtype)) {
        value = raw.round(value, load.dtype);
        if (raw[value].op == ExprOp::kLoad) operands.insert(value);  // a view: what it loads may be put in, too
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
      if (round_intermediates_) copied = kernel.pool.round(copied, dtype);
      kernel.named.push_back({copied, raw[id].source});
      return copied;
    };
    copier.drops_units = true;
    std::vector<std::uint32_t> new_axes;
    for (const std::uint32_t a : axes) {
      const IndexExpr extent = raw.extent(a);
      if (extent.is(1)) copier.axis[a] = 0;
      new_axes.push_back(extent.is(1) ? kernel.pool.new_axis(1) : copier.copy_axis(a));
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      KernelOutput output{unit.values[i], graph_.tensor(unit.values[i]), new_axes, copier.copy(outputs[i]), {}};
      output.index = index_of(unit, unit.values[i], [&](std::size_t d) { return IndexExpr::axis(new_axes[d]); });
      kernel.outputs.push_back(std::move(output));
    }
    for (const auto& [v, loads] : beside) {
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
    return built;
  }

  // The index of a value at a point of the unit's space.
  template <typename IndexAt>
  std::vector<IndexExpr> index_of(const Unit& unit, ValueId v, IndexAt index_at) const {
    std::vector<IndexExpr> index;
    const auto smaller = unit.smaller.find(v);
    for (std::size_t d = 0; d < graph_.tensor(v).shape.size(); ++d) {
      const int at = smaller == unit.smaller.end() ? static_cast<int>(d) : smaller->second[d];
      index.push_back(at == kUnitDim ? IndexExpr(0) : index_at(static_cast<std::size_t>(at)));
    }
    if (unit.part) index[unit.part->dim] += unit.part->offset;
    return index;
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
    if (!contains(unit, worst) && inlining_.force_stored(worst)) return true;
    for (const auto& [value, count] : copies)
      if (count > 1 && !contains(unit, value) && inlining_.force_stored(value)) return true;
    if (no_sharing_) return false;
    no_sharing_ = true;
    return true;
  }

  const Graph& graph_;
  const std::vector<NodeId>& nodes_;
  bool round_intermediates_;
  Inlining inlining_;
  std::vector<Unit> units_;
  std::set<ValueId> alone_;     // products that share no kernel with others
  std::set<ValueId> not_rows_;  // values with which a kernel was not rows throughout
  bool no_sharing_ = false;
  bool pieces_apart_ = false, repeated_products_ = false;
  std::map<std::size_t, std::map<ValueId, std::size_t>> copies_in_;  // by unit: how often formulas stand in it
};

std::size_t kernel_count(const std::vector<LoweredUnit>& units) {
  return static_cast<std::size_t>(
      std::ranges::count_if(units, [](const LoweredUnit& u) { return u.kind != LoweredUnit::Kind::kAlias; }));
}

std::size_t launch_count(const std::vector<LoweredUnit>& units) {
  std::size_t count = 0;
  for (const std::vector<std::uint32_t>& launch : launches_of(units))
    count += units[launch[0]].kind == LoweredUnit::Kind::kAlias ? 0 : 1;
  return count;
}

// No more kernels, and fewer of them or fewer launches.
bool is_better(const std::vector<LoweredUnit>& a, const std::vector<LoweredUnit>& b) {
  if (kernel_count(a) > kernel_count(b)) return false;
  return kernel_count(a) < kernel_count(b) || launch_count(a) < launch_count(b);
}

}  // namespace

std::vector<LoweredUnit> lower_group(const Graph& graph, const std::vector<NodeId>& nodes,
                                     const std::vector<ValueId>& outputs, bool round_intermediates) {
  GroupLowering plain(graph, nodes, outputs, round_intermediates);
  std::vector<LoweredUnit> units = plain.run();
  if (kernel_count(units) < 2) return units;
  // A kernel may run over the shape that a view gives its results, or over that which they have before.
  GroupLowering before_views(graph, nodes, outputs, round_intermediates);
  if (before_views.store_below_views(outputs)) {
    std::vector<LoweredUnit> others = before_views.run();
    if (is_better(others, units)) units = std::move(others);
    if (kernel_count(units) < 2) return units;
  }
  GroupLowering in_pieces(graph, nodes, outputs, round_intermediates);
  if (in_pieces.make_pieces_apart(outputs, plain.has_repeated_products())) {
    std::vector<LoweredUnit> others = in_pieces.run();
    if (is_better(others, units)) units = std::move(others);
  }
  return units;
}

}  // namespace fusec
