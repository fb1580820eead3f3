#include "schedule/lowering/cross_row_reduction.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include "analysis/kernel/copy_expr.h"
#include "analysis/kernel/loads.h"
#include "ir/type.h"
#include "schedule/cost/cost_model.h"
#include "schedule/kernel_forms.h"
#include "schedule/lowering/cross_row_layout.h"
#include "schedule/plan/kernel_planner.h"
#include "schedule/reduction/row_one_pass.h"

namespace fusec {
namespace {

constexpr std::size_t kMostUnits = 64;          // larger groups are too diverse to search
constexpr std::int64_t kFewestBytes = 1 << 17;  // of a tensor that both kernels use

bool is_supported(Reduction reduction) {
  return reduction == Reduction::kSum || reduction == Reduction::kProd || reduction == Reduction::kMax ||
         reduction == Reduction::kMin;
}

bool is_plain(const RowForm& form) {
  return form.segments.empty() && form.elements_per_column == 1 && form.extra_outputs.empty() &&
         !form.kernel.exact_steps;
}

// Returns whether all reductions are of float32 over one axis of equal extent, and do not depend on one another.
bool are_column_reductions(const RowForm& form) {
  const ExprPool& pool = form.kernel.pool;
  const IndexExpr& rows = pool.extent(pool[form.reductions[0]].axes[0]);
  return std::ranges::all_of(form.reductions, [&](ExprId r) {
    const ExprNode& n = pool[r];
    const ExprId body = n.args[0];
    return n.axes.size() == 1 && pool.extent(n.axes[0]) == rows && is_supported(n.reduction) &&
           pool[body].type == ScalarType::kFloat32 &&
           std::ranges::none_of(reachable(pool, std::span(&body, 1)),
                                [&](ExprId id) { return pool[id].op == ExprOp::kReduce; });
  });
}

// Returns the form with a single row axis; nothing if the kernel has no plain rows.
std::optional<RowForm> plain_rows(const FormOfKernel& form_of_kernel, const Kernel& kernel, const Graph& graph) {
  const RowForm* form = row_form_of(kernel, form_of_kernel, graph);
  if (!form || !is_plain(*form)) return std::nullopt;
  RowForm merged = with_rows_merged(*form, graph);
  if (merged.rows.size() != 1 || merged.columns.size() > 1) return std::nullopt;
  return merged;
}

// Adds the operands of the column reductions as outputs of the row kernel.
class Joiner {
 public:
  Joiner(const RowForm& rows, const RowForm& columns, const Graph& graph)
      : graph_(graph), columns_(columns), joined_(rows) {}

  std::optional<RowForm> run() {
    if (!find_columns()) return std::nullopt;
    see_loads();
    const ExprPool& from = columns_.kernel.pool;
    ExprPool& pool = joined_.kernel.pool;
    ExprCopier copier(from, pool);
    copier.axis[columns_.rows[0]] = IndexExpr::axis(joined_.columns[0]);
    for (const ExprId r : columns_.reductions) copier.axis[from[r].axes[0]] = IndexExpr::axis(joined_.rows[0]);
    bool fits = true;
    copier.rewritten = [&](ExprId id, const ExprCopier::Copied&) {
      const std::optional<ExprId> made = value_of_rows(copier, id);
      fits = fits && made;
      return made.value_or(kNoExpr);
    };
    std::vector<ExprId> bodies;
    for (const ExprId r : columns_.reductions) bodies.push_back(copier.copy(from[r].args[0]));
    if (!fits || !shares_ || std::ranges::any_of(bodies, [&](ExprId id) { return reads_own(id); })) return std::nullopt;
    for (const ExprId body : bodies) add(body);
    joined_.reductions = row_reductions(joined_.kernel);
    return std::move(joined_);
  }

 private:
  const ExprPool& pool() const { return joined_.kernel.pool; }
  IndexExpr length() const { return columns_.kernel.pool.extent(columns_.rows[0]); }

  // If the outputs have no columns, the reduced axis gives them.
  bool find_columns() {
    for (const ExprId r : joined_.reductions)
      if (pool()[r].axes.size() != 1 || pool().extent(pool()[r].axes[0]) != length()) return false;
    const ExprPool& from = columns_.kernel.pool;
    if (pool().extent(joined_.rows[0]) != from.extent(from[columns_.reductions[0]].axes[0])) return false;
    if (!joined_.columns.empty()) return pool().extent(joined_.columns[0]) == length();
    joined_.columns = {joined_.kernel.pool.new_axis(length())};
    for (KernelOutput& output : joined_.kernel.outputs) output.axes.push_back(joined_.columns[0]);
    return true;
  }

  // Returns the load's position with the axis along the row renamed to the column axis.
  IndexExpr place(ExprId load) const {
    const IndexExpr at = position_of(graph_, pool(), load);
    return simplify(substitute(at,
                               [&](Variable v) -> std::optional<IndexExpr> {
                                 const bool along = v.kind == Variable::Kind::kAxis && v.id != joined_.rows[0];
                                 return along ? std::optional(IndexExpr::axis(joined_.columns[0])) : std::nullopt;
                               }),
                    pool().bounds());
  }

  void see_loads() {
    for (const ExprId id : reachable(pool(), roots_of(joined_.kernel)))
      if (pool()[id].op == ExprOp::kLoad) places_[pool()[id].source].push_back(place(id));
  }

  // Returns the value that replaces a load of the row kernel's result, rounded as it would be stored. kNoExpr: a load
  // of another tensor. Nothing: a load from another row.
  std::optional<ExprId> value_of_rows(ExprCopier& copier, ExprId id) {
    const ExprNode& n = columns_.kernel.pool[id];
    if (n.op != ExprOp::kLoad) return kNoExpr;
    const auto output = std::ranges::find(joined_.kernel.outputs, n.source, &KernelOutput::value);
    if (output == joined_.kernel.outputs.end()) {
      see_shared(copier, id);
      return kNoExpr;
    }
    const DType dtype = output->type.dtype;
    if (n.args[0] != kNoExpr || compute_type(dtype) != ScalarType::kFloat32) return std::nullopt;
    const IndexExpr stored = position_of(pool(), *output);
    const IndexExpr read = simplify(copier.copy(position_of(graph_, columns_.kernel.pool, id)), pool().bounds());
    if (stored != read) return std::nullopt;
    // Reading an element that the row kernel makes counts as sharing it.
    shares_ = shares_ || mentions(stored, {Variable::Kind::kAxis, joined_.columns[0]});
    return dtype == DType::kFloat32 ? output->expr : joined_.kernel.pool.round(output->expr, dtype);
  }

  void see_shared(ExprCopier& copier, ExprId id) {
    const ExprPool& from = columns_.kernel.pool;
    const auto here = places_.find(from[id].source);
    if (here == places_.end()) return;
    const IndexExpr mine = simplify(copier.copy(position_of(graph_, from, id)), pool().bounds());
    const bool of_elements = mentions(mine, {Variable::Kind::kAxis, joined_.rows[0]}) &&
                             mentions(mine, {Variable::Kind::kAxis, joined_.columns[0]});
    shares_ = shares_ || (of_elements && std::ranges::find(here->second, mine) != here->second.end());
  }

  // Returns whether `root` still loads a result of the row kernel.
  bool reads_own(ExprId root) const {
    return std::ranges::any_of(reachable(pool(), std::span(&root, 1)), [&](ExprId id) {
      return pool()[id].op == ExprOp::kLoad && std::ranges::find(joined_.kernel.outputs, pool()[id].source,
                                                                 &KernelOutput::value) != joined_.kernel.outputs.end();
    });
  }

  // Adds `body` as an output in the kernel's narrowest dtype, so that the vector width does not change.
  void add(ExprId body) {
    DType dtype = DType::kFloat32;
    for (const ExprId id : reachable(pool(), roots_of(joined_.kernel))) {
      const ExprNode& n = pool()[id];
      if (n.op == ExprOp::kLoad && bits(n.dtype) < bits(dtype) && compute_type(n.dtype) == ScalarType::kFloat32)
        dtype = n.dtype;
    }
    const std::uint32_t row = joined_.rows[0], column = joined_.columns[0];
    joined_.kernel.outputs.push_back({.value = columns_.kernel.outputs[0].value,
                                      .type = {.dtype = dtype, .shape = {pool().extent(row), pool().extent(column)}},
                                      .axes = joined_.kernel.outputs[0].axes,
                                      .expr = body,
                                      .index = {IndexExpr::axis(row), IndexExpr::axis(column)}});
  }

  const Graph& graph_;
  const RowForm& columns_;
  RowForm joined_;
  std::map<ValueId, std::vector<IndexExpr>> places_;
  bool shares_ = false;  // both kernels use some tensor element by element
};

bool is_rows(const std::shared_ptr<const FormOfKernel>& form) {
  return form && form->form == KernelForm::kRowReduction;
}

// Returns whether the unit reads no result of another unit except those of unit `except`.
bool waits_for_none(const std::vector<LoweredUnit>& units, std::uint32_t u, std::uint32_t except) {
  const std::vector<ValueId> inputs = inputs_of(units[u].kernel);
  for (std::uint32_t other = 0; other < units.size(); ++other) {
    if (other == u || other == except) continue;
    const LoweredUnit& unit = units[other];
    if (unit.kind == LoweredUnit::Kind::kKernel) {
      for (const KernelOutput& output : unit.kernel.outputs)
        if (std::ranges::find(inputs, output.value) != inputs.end()) return false;
    } else if (unit.kind == LoweredUnit::Kind::kAlias && std::ranges::find(inputs, unit.value) != inputs.end()) {
      return false;
    }
  }
  return true;
}

// Adds the outputs of `other` to `all`, over the axes of `all`.
RowForm merged_columns(RowForm all, const RowForm& other) {
  ExprPool& pool = all.kernel.pool;
  ExprCopier copier(other.kernel.pool, pool);
  copier.axis[other.rows[0]] = IndexExpr::axis(all.rows[0]);
  const std::vector<std::uint32_t> reduced = pool[all.reductions[0]].axes;
  for (const ExprId r : other.reductions) copier.reduction_axes[other.kernel.pool[r].axes] = reduced;
  for (const ExprId r : other.reductions) copier.axis[other.kernel.pool[r].axes[0]] = IndexExpr::axis(reduced[0]);
  for (KernelOutput output : other.kernel.outputs) {
    output.expr = copier.copy(output.expr);
    for (IndexExpr& index : output.index) index = copier.copy(index);
    output.axes = all.kernel.outputs[0].axes;
    all.kernel.outputs.push_back(std::move(output));
  }
  for (const NodeId n : other.kernel.nodes)
    if (std::ranges::find(all.kernel.nodes, n) == all.kernel.nodes.end()) all.kernel.nodes.push_back(n);
  std::ranges::sort(all.kernel.nodes);
  all.reductions = row_reductions(all.kernel);
  return all;
}

// Returns the kernel as columns that can be folded into these rows.
std::optional<RowForm> reducible_columns(const FormOfKernel& form_of_kernel, const Kernel& kernel, const RowForm& rows,
                                         const Graph& graph) {
  std::optional<RowForm> form = plain_rows(form_of_kernel, kernel, graph);
  if (!form || !form->columns.empty() || !are_column_reductions(*form) || row_one_pass(*form)) return std::nullopt;
  return Joiner(rows, *form, graph).run() ? form : std::nullopt;
}

class Finder {
 public:
  Finder(const std::vector<LoweredUnit>& units, const FormsOfUnits& forms, const Graph& graph, const Target& target)
      : units_(units), forms_(forms), graph_(graph), target_(target) {}

  std::vector<CrossRowUnits> run() {
    // A fold must save half a launch, because without it other kernels could share the rows' launch.
    const double launch = target_.launch_seconds;
    std::vector<CrossRowUnits> found, worth_together;
    double saved_together = 0;
    for (std::uint32_t u = 0; u < units_.size(); ++u) {
      if (!is_rows(forms_[u]) || taken_.contains(u) || !waits_for_none(units_, u, u)) continue;
      std::optional<CrossRowUnits> folded = with_rows(u);
      if (!folded) continue;
      const std::optional<Times> times = times_of(*folded);
      if (!times) continue;
      const Prediction &joined = times->joined, &separate = times->separate;
      const double saved = separate.total - separate.launch - (joined.total - joined.launch);
      const bool worth = joined.total + launch / 2 < separate.total;
      if (!worth && saved <= 0) continue;
      taken_.insert(u);
      taken_.insert(folded->columns.begin(), folded->columns.end());
      if (!worth) saved_together += saved;
      (worth ? found : worth_together).push_back(*std::move(folded));
    }
    // All folds share one second launch.
    if (saved_together > (found.empty() ? 1.5 : 0.5) * launch)
      std::ranges::move(worth_together, std::back_inserter(found));
    return found;
  }

 private:
  const Kernel& kernel(std::uint32_t u) const { return units_[u].kernel; }

  std::optional<CrossRowUnits> with_rows(std::uint32_t u) {
    std::vector<std::uint32_t> columns;
    for (std::uint32_t other = 0; other < units_.size(); ++other)
      if (other != u && is_rows(forms_[other]) && !taken_.contains(other) && have_much_in_common(u, other) &&
          waits_for_none(units_, other, u))
        columns.push_back(other);
    if (columns.empty()) return std::nullopt;
    const std::optional<RowForm> rows = plain_rows(*forms_[u], kernel(u), graph_);
    if (!rows) return std::nullopt;
    std::vector<std::uint32_t> with;
    std::optional<RowForm> of_columns;
    for (const std::uint32_t other : columns) {
      std::optional<RowForm> form = reducible_columns(*forms_[other], kernel(other), *rows, graph_);
      if (!form) continue;
      with.push_back(other);
      of_columns = of_columns ? merged_columns(*std::move(of_columns), *form) : *std::move(form);
    }
    if (!of_columns) return std::nullopt;
    std::optional<RowForm> joined = Joiner(*rows, *of_columns, graph_).run();
    if (!joined) return std::nullopt;
    const std::size_t count = of_columns->reductions.size();
    CrossRowUnits folded{.rows = u,
                         .columns = std::move(with),
                         .unstored = {},
                         .cross_row = {.rows = *std::move(joined), .folded = count, .columns = *std::move(of_columns)}};
    drop_unstored_outputs(folded);
    return folded;
  }

  // Returns whether the column kernel reads a large tensor that the row kernel reads or makes.
  bool have_much_in_common(std::uint32_t rows, std::uint32_t columns) const {
    const std::vector<ValueId> of_rows = inputs_of(kernel(rows));
    return std::ranges::any_of(inputs_of(kernel(columns)), [&](ValueId v) {
      const bool common =
          std::ranges::find(of_rows, v) != of_rows.end() ||
          std::ranges::find(kernel(rows).outputs, v, &KernelOutput::value) != kernel(rows).outputs.end();
      return common && bytes_at_hint(graph_.tensor(v), graph_.symbols) >= kFewestBytes;
    });
  }

  void drop_unstored_outputs(CrossRowUnits& folded) const {
    const auto is_read = [&](ValueId v) {
      for (std::uint32_t u = 0; u < units_.size(); ++u) {
        if (units_[u].kind != LoweredUnit::Kind::kKernel || folded.has_column_unit(u)) continue;
        const std::vector<ValueId> inputs = inputs_of(kernel(u));
        if (std::ranges::find(inputs, v) != inputs.end()) return true;
      }
      return false;
    };
    for (const ValueId v : units_[folded.rows].inner)
      if (!is_read(v)) folded.unstored.push_back(v);
    RowForm& rows = folded.cross_row.rows;
    const auto stored = rows.kernel.outputs.end() - static_cast<std::ptrdiff_t>(folded.cross_row.folded);
    rows.kernel.outputs.erase(std::remove_if(rows.kernel.outputs.begin(), stored,
                                             [&](const KernelOutput& output) {
                                               return std::ranges::find(folded.unstored, output.value) !=
                                                      folded.unstored.end();
                                             }),
                              stored);
    rows.reductions = row_reductions(rows.kernel);
  }

  // Predicted times of the fused kernel, and of separate kernels in one launch or in sequence.
  struct Times {
    Prediction joined, separate;
  };
  std::optional<Times> times_of(CrossRowUnits& folded) const {
    const Target beside = as_seen_in_shared_launch(target_);
    const Work of_rows = KernelPlanner(kernel(folded.rows), *forms_[folded.rows], graph_, beside).work();
    std::optional<Work> of_columns;
    bool waits = false;
    for (const std::uint32_t u : folded.columns) {
      const Work one = KernelPlanner(kernel(u), *forms_[u], graph_, beside).work();
      of_columns = of_columns ? horizontally_fused(*of_columns, one, target_) : one;
      waits = waits || !waits_for_none(units_, u, u);
    }
    if (!choose_cross_row_layout(folded.cross_row, of_rows, *of_columns, graph_, target_)) return std::nullopt;
    Times times{.joined = predict(folded.cross_row.work, target_),
                .separate = predict(waits ? of_rows : horizontally_fused(of_rows, *of_columns, target_), target_)};
    if (waits) times.separate += predict(*of_columns, target_);
    return times;
  }

  const std::vector<LoweredUnit>& units_;
  const FormsOfUnits& forms_;
  const Graph& graph_;
  const Target& target_;
  std::set<std::uint32_t> taken_;
};

}  // namespace

KernelSignature signature_of(const CrossRowReduction& cross_row, const Graph& graph) {
  KernelSignature both = signature_of(cross_row.rows.kernel, graph);
  const KernelSignature columns = signature_of(cross_row.columns.kernel, graph);
  both.text = "folded " + std::to_string(cross_row.folded) + ";" + both.text + columns.text;
  for (const ValueId v : columns.tensors) {
    auto at = std::ranges::find(both.tensors, v);
    if (at == both.tensors.end()) at = both.tensors.insert(both.tensors.end(), v);
    both.text += "p" + std::to_string(at - both.tensors.begin()) + ";";
  }
  return both;
}

std::vector<NodeId> CrossRowUnits::nodes(const std::vector<LoweredUnit>& units) const {
  std::set<NodeId> all(units[rows].kernel.nodes.begin(), units[rows].kernel.nodes.end());
  for (const std::uint32_t u : columns) all.insert(units[u].kernel.nodes.begin(), units[u].kernel.nodes.end());
  return {all.begin(), all.end()};
}

std::vector<CrossRowUnits> cross_row_units(const std::vector<LoweredUnit>& units, const FormsOfUnits& forms,
                                           const Graph& graph, const Target& target) {
  if (units.size() < 2 || units.size() > kMostUnits) return {};
  return Finder(units, forms, graph, target).run();
}

}  // namespace fusec
