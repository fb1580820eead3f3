#include "schedule/lowering/lower_group.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>

#include "analysis/kernel/loads.h"
#include "analysis/kernel/subpixel_phases.h"
#include "analysis/lowering/concat_parts.h"
#include "analysis/lowering/inlining.h"
#include "analysis/lowering/partition_into_units.h"
#include "ir/budget.h"
#include "ir/error.h"
#include "ir/tuple_field.h"
#include "ir/type.h"
#include "schedule/form_memory.h"
#include "schedule/kernel_forms.h"
#include "schedule/lowering/horizontal_fusion.h"
#include "schedule/lowering/kernel_memory.h"
#include "schedule/lowering/separate_rows.h"
#include "schedule/plan/kernel_planner.h"
#include "schedule/reduction/row_form.h"
#include "schedule/target/target.h"

namespace fusec {
namespace {

class GroupLowering {
 public:
  // `undecided`: nothing has been decided about the values of these nodes.
  GroupLowering(const Graph& graph, const std::vector<NodeId>& nodes, const Inlining& undecided,
                bool round_intermediates, FormMemory& forms, KernelMemory& kernels)
      : graph_(graph),
        nodes_(nodes),
        round_intermediates_(round_intermediates),
        forms_(forms),
        kernels_(kernels),
        inlining_(undecided) {}

  // Of outputs that are views: what they are views of is stored from now on, and they are that memory. False where that
  // changes nothing.
  bool store_below_views(const std::vector<ValueId>& outputs) {
    bool changed = false;
    for (const ValueId v : outputs) {
      count_step();
      ValueId below = v;
      while (const std::optional<ValueId> operand = viewed(below)) below = *operand;
      if (below != v) changed |= inlining_.store_as_output(below);
    }
    return changed;
  }

  // From now on rows may share a kernel with what reduces segments of them, which it sees through views. False where
  // there is nothing of that kind.
  bool join_segments(const std::vector<ValueId>& outputs) {
    if (!std::ranges::any_of(nodes_, [&](NodeId n) { return splits_rows(graph_.nodes[n]); })) return false;
    store_below_views(outputs);
    inlining_.look_through_views();
    limits_.try_segments = true;
    return true;
  }

  // From now on a product of which several kernels need different pieces is computed by each of them, and what a concat
  // joins is stored in its place by whoever makes it. False where there is nothing of that kind.
  bool make_pieces_apart(const std::vector<ValueId>& outputs, bool repeated_products) {
    pieces_apart_ = true;
    bool changed = repeated_products;
    for (const ValueId v : outputs) {
      count_step();
      if (!may_be_in_parts(graph_, inlining_, v)) continue;
      inlining_.store_in_parts(*concat_below(graph_, inlining_, v));
      changed = true;
    }
    return changed;
  }
  bool recompute_outputs(const GroupLowering& plain) { return inlining_.recompute_outputs(plain.inlining_); }
  // Whether a product was stored since several kernels would have computed it.
  bool has_repeated_products() const { return repeated_products_; }

  std::vector<LoweredUnit> run() {
    for (;;) {
      count_step();
      inlining_.decide();
      units_ = partition_into_units(graph_, nodes_, inlining_, limits_);
      std::optional<std::vector<LoweredUnit>> units = build_units();
      if (!units) continue;
      return std::move(*units);
    }
  }

 private:
  const Node& producer(ValueId v) const { return graph_.nodes[graph_.value(v).producer]; }

  // A view in which the last dimension is a part of what it was.
  bool splits_rows(const Node& node) const {
    if (!node.op->view || node.op->special != Special::kNone || node.inputs.empty() || node.inputs[0] == kNone)
      return false;
    const Shape &from = graph_.tensor(resolve_tuple(graph_, node.inputs[0])).shape,
                &to = graph_.tensor(node.first_output).shape;
    if (from.empty() || to.size() <= from.size()) return false;
    const auto row = from.back().as_constant(), part = to.back().as_constant();
    return row && part && *part > 1 && *part < *row && *row % *part == 0;
  }

  // The value made by this group of which `v` is a view.
  std::optional<ValueId> viewed(ValueId v) const {
    if (!inlining_.inside(v) || !producer(v).op->view || producer(v).op->special != Special::kNone) return std::nullopt;
    const ValueId operand = producer(v).inputs[0];
    if (operand == kNone || !inlining_.facts(operand) || graph_.tensor(operand).dtype != graph_.tensor(v).dtype)
      return std::nullopt;
    return operand;
  }

  // Nothing where some value would be computed too many times over: it is stored now, and all begins anew.
  std::optional<std::vector<LoweredUnit>> build_units() {
    std::vector<LoweredUnit> result;
    copies_in_.clear();
    for (const KernelUnit& unit : units_) {
      count_step();
      LoweredUnit lowered;
      lowered.kind = unit.kind;
      lowered.node = unit.node;
      if (unit.kind == LoweredUnit::Kind::kAlias) {
        lowered.value = unit.values[0];
        lowered.of = *inlining_.alias_of(unit.values[0]);
      } else if (unit.kind == LoweredUnit::Kind::kKernel) {
        const std::shared_ptr<KnownKernel> known = kernels_.of(graph_, nodes_, inlining_, unit, round_intermediates_);
        const BuiltKernel& built = known->built;
        if (built.over_duplicated != kNone) {
          if (!give_up_inlining(unit, built)) throw InternalError("an expression grows without end");
          return std::nullopt;
        }
        const bool attention = std::ranges::any_of(unit.values, [&](ValueId v) {
          return is_substituted(inlining_, unit, v) && inlining_.inlined(v).attention;
        });
        if (attention ? !is_attention(unit, *known) : unit.joined && part_joined(unit, *known)) return std::nullopt;
        const bool segmented = !unit.reshaped.empty() ||
                               std::ranges::any_of(unit.values, [&](ValueId v) { return has_segments(unit, v); });
        if (segmented && !are_segments(*known)) {
          if (unit.reshaped.empty())
            inlining_.separate_segments();
          else
            limits_.try_segments = false;
          return std::nullopt;
        }
        if (!unit.tentative.empty() && !unit.matmul && !segmented && !are_rows_throughout(*known) &&
            !(unit.vector_contraction && form_of(*known).form == KernelForm::kRowGemm)) {
          limits_.not_rows.insert(unit.tentative.back());
          return std::nullopt;
        }
        if (unit.values.size() > 1 && !attention && !unit.matmul && !segmented && goes_across(*known) &&
            limits_.across.insert(unit.values.back()).second)
          return std::nullopt;
        if (!known->form_of_lowered) find_phases(*known);
        lowered.kernel = known->phases ? *known->phases : built.kernel;
        lowered.form = known->form_of_lowered;
        copies_in_[static_cast<std::size_t>(&unit - units_.data())] = built.copies;
      }
      result.push_back(std::move(lowered));
    }
    if (store_repeated_reductions(result)) return std::nullopt;
    return result;
  }

  const FormOfKernel& form_of(KnownKernel& known) const {
    if (!known.form) known.form = forms_.of(known.built.kernel);
    return *known.form;
  }

  bool are_rows_throughout(KnownKernel& known) const {
    if (!known.is_rows_throughout) known.is_rows_throughout = is_rows_throughout(known.built.kernel);
    return *known.is_rows_throughout;
  }

  bool goes_across(KnownKernel& known) const {
    if (!known.goes_across) known.goes_across = reduces_across(known.built.kernel);
    return *known.goes_across;
  }

  void find_phases(KnownKernel& known) const {
    known.phases = in_phases(known);
    if (!known.phases) form_of(known);
    known.form_of_lowered = known.phases ? forms_.of(*known.phases) : known.form;
  }

  // Transposed convolutions that are no product (of one channel, or one a group) meet the taps of their phase alone,
  // too, unless windows that slide over all are less. Nothing for all other kernels.
  std::optional<Kernel> in_phases(KnownKernel& known) const {
    const Kernel& kernel = known.built.kernel;
    std::optional<Kernel> phases = with_subpixel_phases(kernel);
    if (!phases) return std::nullopt;
    const FormOfKernel& form = form_of(known);
    if (form.contraction) return std::nullopt;
    const Target any;
    const auto as_is = loop_instructions(KernelPlanner(kernel, form, graph_, any));
    const std::shared_ptr<const FormOfKernel> form_of_phases = forms_.of(*phases);
    const auto now = loop_instructions(KernelPlanner(*phases, *form_of_phases, graph_, any));
    return as_is && now && *as_is <= *now ? std::nullopt : std::move(phases);
  }

  // Do reductions go along a tensor's memory, and others across it? So are rows and columns of a square.
  bool reduces_across(const Kernel& kernel) const {
    std::map<ValueId, std::set<bool>> along;
    for (const ExprId r : row_reductions(kernel)) {
      count_step();
      const ExprNode& reduction = kernel.pool[r];
      const auto steps = [&](const IndexExpr& at, const std::vector<std::uint32_t>& axes) {
        return std::ranges::any_of(axes, [&](std::uint32_t a) {
          return coefficient_of(at, {Variable::Kind::kAxis, a}) == 1;
        });
      };
      for (const ExprId id : reachable(kernel.pool, std::span(&reduction.args[0], 1))) {
        if (kernel.pool[id].op != ExprOp::kLoad) continue;
        const IndexExpr at = position_of(graph_, kernel.pool, id);
        const bool by_reduction = steps(at, reduction.axes);
        if (by_reduction != steps(at, kernel.outputs[0].axes)) along[kernel.pool[id].source].insert(by_reduction);
      }
    }
    return std::ranges::any_of(along, [](const auto& of_tensor) { return of_tensor.second.size() > 1; });
  }

  bool has_segments(const KernelUnit& unit, ValueId v) const {
    return is_substituted(inlining_, unit, v) && !inlining_.inlined(v).segments.empty();
  }

  // Whether parts of rows are reduced behind whole ones so that there is a form for it.
  bool are_segments(KnownKernel& known) const {
    const FormOfKernel& form = form_of(known);
    if (form.form != KernelForm::kRowReduction) return false;
    const RowForm* rows = row_form_of(known.built.kernel, form, graph_);
    return rows && !rows->segments.empty();
  }

  // Where values stand inside one another as attention, and the kernel is none, sees to it that they will not next
  // time.
  bool is_attention(const KernelUnit& unit, KnownKernel& known) {
    const Kernel& kernel = known.built.kernel;
    std::vector<ValueId> results;
    bool once = true;
    for (const AttentionSubgraph& subgraph : inlining_.attention()) {
      count_step();
      const NodeId node = graph_.value(subgraph.result).producer;
      const bool here = std::ranges::any_of(kernel.nodes, [&](NodeId n) {
        return n == node ||
               std::ranges::any_of(subgraph.inner, [&](ValueId v) { return graph_.value(v).producer == n; });
      });
      if (!here) continue;
      results.push_back(subgraph.result);
      once = once && elements_at_hint(unit.space) <= elements_at_hint(subgraph.result);
      for (const ValueId v : subgraph.stored_alongside)
        once = once && std::ranges::any_of(kernel.outputs, [&](const KernelOutput& o) { return o.value == v; });
    }
    if (once && form_of(known).form == KernelForm::kAttention) return true;
    for (const ValueId result : results) inlining_.reject_attention(result);
    return results.empty();
  }

  // Does it reduce a product of one row as it makes it? As plain rows that would be made anew for each reduction.
  bool reduces_made_rows(const KernelUnit& unit, const BuiltKernel& built) const {
    const bool reduces_own = std::ranges::any_of(unit.values, [&](ValueId v) {
      return inlining_.inlined(v).reduces && !inlining_.inlined(v).vector_contraction;
    });
    return (unit.vector_contraction && reduces_own) ||
           std::ranges::any_of(inlining_.reduced_contractions(), [&](ValueId v) {
             return inlining_.inlined(v).vector_contraction && built.copies.contains(v);
           });
  }

  // Products of several depths, each for outputs of its own: they have no factor in common, and side by side each has
  // the form that is best for it.
  static bool are_independent(const Kernel& kernel, const Contraction& contraction) {
    if (contraction.loops.size() < 2) return false;
    return std::ranges::all_of(kernel.outputs, [&](const KernelOutput& output) {
      const std::vector<ExprId> needed = reachable(kernel.pool, std::span(&output.expr, 1));
      return std::ranges::count_if(contraction.loops, [&](const ContractionLoop& loop) {
               return std::ranges::any_of(loop.terms, [&](const ContractionTerm& term) {
                 return std::ranges::find(needed, term.reduction) != needed.end();
               });
             }) == 1;
    });
  }

  // Where what was joined has no form of its own, sees to it that it will not be joined next time.
  bool part_joined(const KernelUnit& unit, KnownKernel& known) {
    const BuiltKernel& built = known.built;
    const FormOfKernel& form = form_of(known);
    if (form.form == KernelForm::kRowGemm) return false;
    const bool independent =
        form.contraction && are_independent(form.rewritten ? *form.rewritten : built.kernel, *form.contraction);
    const bool has_form = unit.matmul ? form.contraction.has_value() && !independent
                                      : form.form == KernelForm::kRowReduction && !reduces_made_rows(unit, built);
    std::optional<ValueId> apart;
    if (!has_form && unit.values.size() > 1 && limits_.alone.insert(unit.values.back()).second) return true;
    if (!has_form) {
      // Rows of a product that cannot be reduced where they are: what is reduced is stored.
      bool stored = false;
      for (const ValueId v : inlining_.reduced_contractions())
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
      count_step();
      const FormulaFacts& facts = *inlining_.facts(value);
      if (!facts.reduces || contains(unit, value)) continue;
      const bool dear = static_cast<std::int64_t>(count) * rows > rows_at_hint(value, facts.rows);
      if (has_form ? dear : !apart) apart = value;
    }
    if (has_form && !apart) return false;
    if (apart && inlining_.force_stored(*apart)) return true;
    bool fresh = false;
    for (const ValueId v : unit.values) fresh = fresh || limits_.alone.insert(v).second;
    if (!fresh) {
      if (inlining_.contractions_are_separate()) throw InternalError("products that are apart stand in one kernel");
      inlining_.separate_contractions();
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
    std::map<NodeId, int> kernels;
    bool changed = false;
    for (const LoweredUnit& unit : units)
      for (const NodeId n : unit.kernel.nodes) {
        count_step();
        if (++kernels[n] != 2) continue;  // once: a split may have thousands of results, each in a kernel of its own
        const Node& node = graph_.nodes[n];
        for (std::uint32_t i = 0; i < node.output_count; ++i) {
          const ValueId v = node.first_output + i;
          const FormulaFacts* facts = inlining_.facts(v);
          if (!facts || !facts->reduces || (pieces_apart_ && in_pieces(v))) continue;
          repeated_products_ = repeated_products_ || facts->contraction;
          changed |= inlining_.force_stored(v);
        }
      }
    return changed;
  }

  // Do the kernels that compute this product make no more of its elements together than it has?
  bool in_pieces(ValueId v) const {
    if (!inlining_.facts(v)->contraction) return false;
    std::int64_t elements = 0;
    for (const auto& [unit, copies] : copies_in_)
      if (const auto it = copies.find(v); it != copies.end())
        elements += static_cast<std::int64_t>(it->second) * elements_at_hint(units_[unit].space);
    return elements <= elements_at_hint(v);
  }

  // The value that stands in the kernel most often is stored from now on; or kernels share nothing any more.
  bool give_up_inlining(const KernelUnit& unit, const BuiltKernel& built) {
    ValueId worst = built.over_duplicated;
    for (const auto& [value, count] : built.copies)
      if (count > built.copies.at(worst)) worst = value;
    if (!contains(unit, worst) && inlining_.force_stored(worst)) return true;
    for (const auto& [value, count] : built.copies)
      if (count > 1 && !contains(unit, value) && inlining_.force_stored(value)) return true;
    if (limits_.no_sharing) return false;
    limits_.no_sharing = true;
    return true;
  }

  const Graph& graph_;
  const std::vector<NodeId>& nodes_;
  bool round_intermediates_;
  FormMemory& forms_;
  KernelMemory& kernels_;
  Inlining inlining_;
  std::vector<KernelUnit> units_;
  SharingLimits limits_;
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

// Fewer launches, though of more kernels side by side perhaps; or as many, of fewer kernels.
bool is_better(const std::vector<LoweredUnit>& a, const std::vector<LoweredUnit>& b) {
  const std::size_t launches_a = launch_count(a), launches_b = launch_count(b);
  return launches_a < launches_b || (launches_a == launches_b && kernel_count(a) < kernel_count(b));
}

std::vector<LoweredUnit> best_units(const Graph& graph, const std::vector<NodeId>& nodes,
                                    const std::vector<ValueId>& outputs, bool round_intermediates, FormMemory& forms,
                                    LoweringMemory& memory) {
  const Inlining undecided(graph, nodes, outputs, memory.facts);
  GroupLowering plain(graph, nodes, undecided, round_intermediates, forms, memory.kernels);
  std::vector<LoweredUnit> units = plain.run();
  if (kernel_count(units) < 2) {
    if (kernel_count(units) == 0 || !units[0].form || units[0].form->form != KernelForm::kRowReduction) return units;
    GroupLowering in_pieces(graph, nodes, undecided, round_intermediates, forms, memory.kernels);
    if (!in_pieces.make_pieces_apart(outputs, false)) return units;
    std::vector<LoweredUnit> pieces = in_pieces.run();
    return launch_count(pieces) == 1 && are_separate_rows(pieces, graph) ? pieces : units;
  }
  const auto consider = [&](const auto& change) {
    GroupLowering changed(graph, nodes, undecided, round_intermediates, forms, memory.kernels);
    if (!change(changed)) return;
    std::vector<LoweredUnit> others = changed.run();
    if (is_better(others, units)) units = std::move(others);
  };
  // A kernel may run over the shape that a view gives its results, or over that which they have before.
  consider([&](GroupLowering& lowering) { return lowering.store_below_views(outputs); });
  if (kernel_count(units) < 2) return units;
  consider([&](GroupLowering& lowering) { return lowering.join_segments(outputs); });
  if (kernel_count(units) < 2) return units;
  consider([&](GroupLowering& lowering) { return lowering.make_pieces_apart(outputs, plain.has_repeated_products()); });
  consider([&](GroupLowering& lowering) { return lowering.recompute_outputs(plain); });
  return units;
}

void find_inner(std::vector<LoweredUnit>& units, const std::vector<ValueId>& outputs) {
  std::set<ValueId> needed(outputs.begin(), outputs.end());
  for (const LoweredUnit& unit : units)
    if (unit.kind == LoweredUnit::Kind::kAlias) needed.insert(unit.of);
  for (LoweredUnit& unit : units)
    for (const KernelOutput& output : unit.kernel.outputs)
      if (!needed.contains(output.value)) unit.inner.push_back(output.value);
}

}  // namespace

std::vector<LoweredUnit> lower_group(const Graph& graph, const std::vector<NodeId>& nodes,
                                     const std::vector<ValueId>& outputs, bool round_intermediates, FormMemory* forms,
                                     LoweringMemory* memory) {
  FormMemory own_forms;
  LoweringMemory own_memory;
  std::vector<LoweredUnit> units =
      best_units(graph, nodes, outputs, round_intermediates, forms ? *forms : own_forms, memory ? *memory : own_memory);
  if (units.size() > 1) find_inner(units, outputs);
  return units;
}

void set_numerics(std::vector<LoweredUnit>& units, const Numerics& numerics) {
  for (LoweredUnit& unit : units) {
    if (unit.kernel.numerics == numerics) continue;
    unit.kernel.numerics = numerics;
    unit.form.reset();
  }
}

}  // namespace fusec
