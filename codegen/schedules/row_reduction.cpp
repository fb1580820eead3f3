#include "codegen/schedules/row_reduction.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "analysis/copy_expr.h"
#include "analysis/kernel_forms.h"
#include "codegen/schedules/direct.h"
#include "codegen/schedules/row_form.h"
#include "codegen/schedules/vector_access.h"
#include "ir/type.h"

namespace fusec {
namespace {

enum class Team : std::uint8_t {
  kWarp,    // 32 threads a row, several rows a block
  kBlock,   // the whole block
  kColumn,  // 32 neighbouring rows a block, each with some threads far apart
};

struct Layout {
  Team team = Team::kBlock;
  int threads = 256;  // of a block
  int rows = 1;       // of a block
  int parts = 256;    // threads of a row
};

constexpr int kSmallWindow = 48;  // up to this length single threads do better, where no column needs the result
constexpr int kColumnRows = 32;
constexpr std::int64_t kLongReduction = 1 << 17;  // from this length on, a reduction to one value takes many blocks

// A reduction to one value in two kernels: blocks leave partial results in scratch memory, one block combines them.
enum class Step : std::uint8_t { kWhole, kPartial, kFinal };
constexpr int kPartialBytes = 16;  // the largest accumulator

IndexExpr length_of(const ExprPool& pool, ExprId reduction) {
  return point_count(pool, pool[reduction].axes);
}

// What the loads of the reductions' bodies say: does memory run along the reduced axis, or along the rows?
struct Direction {
  int along_reduction = 0, along_rows = 0;
  std::uint32_t contiguous_row = 0;  // where along_rows > 0: the row axis
  bool product = false;              // of loads that each lack a row axis of the other: a matrix product
};

Direction direction_of(const RowForm& form, const Graph& graph) {
  Direction direction;
  const ExprPool& pool = form.kernel.pool;
  const auto depends = dependences(pool);
  for (const ExprId r : form.reductions) {
    std::vector<std::vector<std::uint32_t>> lacking;
    for (const ExprId id : reachable(pool, std::vector<ExprId>{pool[r].args[0]})) {
      const ExprNode& n = pool[id];
      if (n.op != ExprOp::kLoad) continue;
      const IndexExpr at = simplify(flat_index(graph.tensor(n.source).shape, n.indices), pool.bounds());
      bool reduced = false, along_reduction = false, some_row = form.rows.empty();
      std::vector<std::uint32_t> lacks;
      for (const std::uint32_t a : pool[r].axes) {
        reduced = reduced || std::binary_search(depends[id].begin(), depends[id].end(), a);
        along_reduction = along_reduction || coefficient_of(at, {Variable::Kind::kAxis, a}) == 1;
      }
      for (const std::uint32_t a : form.rows) {
        const bool here = std::binary_search(depends[id].begin(), depends[id].end(), a);
        some_row = some_row || here;
        if (!here) lacks.push_back(a);
        if (reduced && coefficient_of(at, {Variable::Kind::kAxis, a}) == 1) {
          ++direction.along_rows;
          direction.contiguous_row = a;
        }
      }
      // A vector that all rows share says nothing beside a matrix.
      if (along_reduction && some_row) ++direction.along_reduction;
      if (reduced && some_row) lacking.push_back(std::move(lacks));
    }
    for (const auto& a : lacking)
      for (const auto& b : lacking) direction.product = direction.product || (!a.empty() && !b.empty() && a != b);
  }
  return direction;
}

int power_of_two_at_least(std::int64_t n, int low, int high) {
  int p = low;
  while (p < high && p < n) p *= 2;
  return p;
}

Layout choose_layout(const RowForm& form, const Direction& direction, const Target& target) {
  const ExprPool& pool = form.kernel.pool;
  const std::vector<Symbol>& symbols = pool.bounds().symbols;
  std::int64_t longest = form.columns.empty() ? 1 : value_at_hint(point_count(pool, form.columns), symbols);
  for (const ExprId r : form.reductions) longest = std::max(longest, value_at_hint(length_of(pool, r), symbols));
  const std::int64_t rows = value_at_hint(point_count(pool, form.rows), symbols);
  if (direction.along_rows > direction.along_reduction && !form.rows.empty()) {
    // More threads a row where there are few rows.
    const bool few = rows / kColumnRows < 2 * target.multiprocessors;
    const int parts = power_of_two_at_least(longest / 8, 1, few ? 32 : 8);
    return {Team::kColumn, kColumnRows * parts, kColumnRows, parts};
  }
  const bool many = rows >= 4 * target.multiprocessors;
  if (longest <= (many ? 1024 : 128) && !form.rows.empty()) return {Team::kWarp, 256, 8, 32};
  const int threads = power_of_two_at_least(longest / (many ? 16 : 4), 64, 1024);
  return {Team::kBlock, threads, 1, threads};
}

// Elements that a thread takes at once along an axis, 1 where accesses do not allow more.
int vector_width(const RowForm& form, const Graph& graph, std::uint32_t axis, const std::vector<ExprId>& roots,
                 bool outputs) {
  const ExprPool& pool = form.kernel.pool;
  const IndexExpr& extent = pool.extent(axis);
  int narrowest = 0;
  const Variable variable{Variable::Kind::kAxis, axis};
  auto see = [&](const IndexExpr& at, DType dtype) {
    if (coefficient_of(at, variable) == 1) narrowest = narrowest == 0 ? bits(dtype) : std::min(narrowest, bits(dtype));
  };
  for (const ExprId id : reachable(pool, roots)) {
    const ExprNode& n = pool[id];
    if (n.op == ExprOp::kLoad)
      see(simplify(flat_index(graph.tensor(n.source).shape, n.indices), pool.bounds()), n.dtype);
  }
  if (outputs)
    for (const KernelOutput& o : form.kernel.outputs)
      see(simplify(flat_index(o.type.shape, o.index), pool.bounds()), o.type.dtype);
  if (narrowest == 0) return 1;
  int width = std::clamp(128 / narrowest, 1, 8);
  while (width > 1 && !proves_multiple_of(extent, width, pool.bounds())) width /= 2;
  return width;
}

// The kernel with the last of these axes walked in groups of `width`.
struct Split {
  std::vector<std::uint32_t> reduction;  // axes of the reductions that were split, afterwards; empty: none
  int reduction_width = 1;
  int column_width = 1;
};

RowForm split_vectors(const RowForm& form, const Graph& graph, const Layout& layout, Split& split) {
  if (layout.team == Team::kColumn) return form;
  const ExprPool& old = form.kernel.pool;
  std::vector<ExprId> bodies;
  const std::vector<std::uint32_t> reduced = old[form.reductions.back()].axes;
  bool shared = reduced.size() == 1;
  for (const ExprId r : form.reductions) {
    if (old[r].axes == reduced) bodies.push_back(old[r].args[0]);
  }
  if (shared) split.reduction_width = vector_width(form, graph, reduced[0], bodies, false);
  const bool ragged = std::ranges::any_of(form.kernel.outputs, [&](const KernelOutput& output) {
    const std::size_t lacking = columns_without(form, output).size();
    return lacking != 0 && lacking != form.columns.size();
  });
  if (!form.columns.empty() && !ragged)
    split.column_width = vector_width(form, graph, form.columns.back(), roots_of(form.kernel), true);
  RowForm result;
  std::vector<std::uint32_t> new_reduced;
  result.kernel = change_axes(form.kernel, [&](ExprPool& pool, ExprCopier& copier) {
    AxisChange change;
    const std::vector<std::uint32_t>& axes = form.kernel.outputs[0].axes;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const IndexExpr& extent = old.extent(axes[i]);
      const int width = i + 1 == axes.size() && !form.columns.empty() ? split.column_width : 1;
      const std::uint32_t outer = pool.new_axis(simplify(floor_div(extent, width), pool.bounds()));
      change.new_axes.push_back(outer);
      (i < form.rows.size() ? result.rows : result.columns).push_back(outer);
      IndexExpr value = IndexExpr::axis(outer);
      if (width > 1) {
        const std::uint32_t lane = pool.new_axis(width);
        change.new_axes.push_back(lane);
        result.columns.push_back(lane);
        value = value * width + IndexExpr::axis(lane);
      }
      change.values.push_back(value);
    }
    if (split.reduction_width > 1) {
      const std::uint32_t outer =
          pool.new_axis(simplify(floor_div(old.extent(reduced[0]), split.reduction_width), pool.bounds()));
      const std::uint32_t lane = pool.new_axis(split.reduction_width);
      copier.axis[reduced[0]] = IndexExpr::axis(outer) * split.reduction_width + IndexExpr::axis(lane);
      copier.reduction_axes[reduced] = {outer, lane};
      new_reduced = {outer, lane};
    }
    return change;
  });
  split.reduction = new_reduced;
  return result;
}

// The reductions, those over the same axes together.
std::vector<std::vector<ExprId>> by_axes(const RowForm& form) {
  std::vector<std::vector<ExprId>> groups;
  for (const ExprId r : form.reductions) {
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const std::vector<ExprId>& group) {
      return form.kernel.pool[group[0]].axes == form.kernel.pool[r].axes;
    });
    if (same == groups.end())
      groups.push_back({r});
    else
      same->push_back(r);
  }
  return groups;
}

// Reductions of everything to one value, none of which needs another's result, long enough for many blocks: how many.
int blocks_for_partials(const RowForm& form, const Target& target) {
  const ExprPool& pool = form.kernel.pool;
  if (!form.rows.empty() || !form.columns.empty()) return 1;
  std::int64_t longest = 0;
  for (const ExprId r : form.reductions) {
    longest = std::max(longest, value_at_hint(length_of(pool, r), pool.bounds().symbols));
    for (const ExprId inner : reachable(pool, std::vector<ExprId>{pool[r].args[0]}))
      if (pool[inner].op == ExprOp::kReduce) return 1;
  }
  if (longest < kLongReduction) return 1;
  return static_cast<int>(std::min<std::int64_t>(longest / (kLongReduction / 8), 2 * target.multiprocessors));
}

class RowEmitter {
 public:
  RowEmitter(const RowForm& form, const Graph& graph, const Layout& layout, const Split& split, bool wide,
             Step step = Step::kWhole, int partial_blocks = 1)
      : form_(form),
        graph_(graph),
        layout_(layout),
        split_(split),
        step_(step),
        partial_blocks_(partial_blocks),
        writer_(graph, wide),
        emitter_(form.kernel, writer_) {}

  KernelSource emit(const Kernel& original) {
    const ExprPool& pool = form_.kernel.pool;
    const IndexExpr rows = point_count(pool, form_.rows);
    open_rows(rows);
    if (step_ == Step::kPartial) {
      for (const std::vector<ExprId>& together : by_axes(form_)) reduce(together);
    } else {
      emitter_.reduce_hook = [this](const std::vector<ExprId>& reductions) { return reduce(reductions); };
      emitter_.emit_independent(roots_of(form_.kernel));
      std::vector<const KernelOutput*> of_row, of_columns;
      for (const KernelOutput& output : form_.kernel.outputs)
        (columns_without(form_, output).size() == columns_with_extent() ? of_row : of_columns).push_back(&output);
      if (!of_row.empty()) store_row(of_row);
      if (!of_columns.empty()) store_columns(of_columns);
    }
    KernelSource source = writer_.finish(kernel_comment(graph_, original), layout_.threads);
    source.grid[0] =
        step_ == Step::kPartial ? IndexExpr(partial_blocks_) : simplify(ceil_div(rows, layout_.rows), pool.bounds());
    source.name = kernel_name(graph_, original.nodes);
    source.schedule = layout_.team == Team::kColumn ? "column_reduction" : "row_reduction";
    return source;
  }

 private:
  void open_rows(const IndexExpr& rows) {
    const std::string type = writer_.index_type();
    const std::string block = writer_.wide() ? "(long long)blockIdx.x" : "blockIdx.x";
    part_ = writer_.unique(layout_.team == Team::kColumn ? "part" : "lane");
    std::string row = "0";
    switch (layout_.team) {
      case Team::kWarp:
        writer_.line(fmt::format("const int {} = threadIdx.x % 32;", part_));
        row = writer_.unique("row");
        writer_.line(fmt::format("const {} {} = {} * {} + threadIdx.x / 32;", type, row, block, layout_.rows));
        writer_.line(fmt::format("if ({} >= {}) return;", row, emitter_.index_text().tight(rows)));
        break;
      case Team::kBlock:
        writer_.line(fmt::format("const int {} = threadIdx.x;", part_));
        if (form_.rows.empty()) break;
        row = writer_.unique("row");
        writer_.line(fmt::format("const {} {} = {};", type, row, block));
        break;
      case Team::kColumn: {
        writer_.line(fmt::format("const int {} = threadIdx.x / {};", part_, kColumnRows));
        const std::string wanted = writer_.unique("wanted_row");
        writer_.line(
            fmt::format("const {} {} = {} * {} + threadIdx.x % {};", type, wanted, block, kColumnRows, kColumnRows));
        active_ = writer_.unique("active");
        const std::string count = emitter_.index_text().tight(rows);
        writer_.line(fmt::format("const bool {} = {} < {};  // the others work along, and store nothing", active_,
                                 wanted, count));
        row = writer_.unique("row");
        writer_.line(fmt::format("const {} {} = {} ? {} : {} - 1;", type, row, active_, wanted, count));
        break;
      }
    }
    bind_flat(emitter_, form_.rows, row);
  }

  // `for (k = lane; k < count; k += team)`: the axes are bound, the loop stays open.
  void open_loop(const std::vector<std::uint32_t>& axes, std::string_view wish) {
    const IndexExpr count = point_count(form_.kernel.pool, axes);
    const std::string k = writer_.unique(wish);
    const bool partial = step_ == Step::kPartial;
    const std::string first = partial ? fmt::format("blockIdx.x * {} + {}", layout_.parts, part_) : part_;
    writer_.open(fmt::format("for ({0} {1} = {2}; {1} < {3}; {1} += {4})", writer_.index_type(), k, first,
                             emitter_.index_text().tight(count), layout_.parts * (partial ? partial_blocks_ : 1)));
    bind_flat(emitter_, axes, k, "cdefghuvw");
  }

  std::string team_reduce(const ExprEmitter::Accumulator& a) {
    writer_.use("combine");
    if (a.extreme) writer_.use("extreme_lanes");
    switch (layout_.team) {
      case Team::kWarp:
        writer_.use("warp_reduce");
        return fmt::format("warp_reduce({}, {})", a.name, a.combine);
      case Team::kBlock:
        writer_.use("block_reduce");
        return fmt::format("block_reduce<{}>({}, {})", layout_.threads, a.name, a.combine);
      case Team::kColumn:
        writer_.use("column_reduce");
        return fmt::format("column_reduce<{}, {}>({}, {})", kColumnRows, layout_.parts, a.name, a.combine);
    }
    return {};
  }

  bool reduce(const std::vector<ExprId>& reductions) {
    const ExprPool& pool = form_.kernel.pool;
    if (std::find(form_.reductions.begin(), form_.reductions.end(), reductions[0]) == form_.reductions.end())
      return false;
    std::vector<ExprEmitter::Accumulator> accumulators;
    std::vector<ExprId> bodies;
    for (const ExprId r : reductions) {
      accumulators.push_back(emitter_.accumulator(r));
      const ExprEmitter::Accumulator& a = accumulators.back();
      writer_.line(fmt::format("{} {}{}{};", a.type, a.name, a.extreme ? "" : " = ", a.identity));
      bodies.push_back(pool[r].args[0]);
    }
    if (step_ == Step::kFinal) {
      for (const ExprEmitter::Accumulator& a : accumulators) combine_partials(a);
      return true;
    }
    const ExprEmitter::Mark outside = emitter_.mark();
    std::vector<std::uint32_t> axes = pool[reductions[0]].axes;
    const bool vector = axes == split_.reduction && split_.reduction_width > 1;
    std::uint32_t lane_axis = 0;
    if (vector) {
      lane_axis = axes.back();
      axes.pop_back();
    }
    open_loop(axes, "k");
    if (vector) {
      VectorLoads loads(emitter_, graph_, lane_axis, split_.reduction_width);
      const std::string e = writer_.unique("e");
      loads.declare(bodies, e);
      emitter_.emit_independent(bodies);
      writer_.line("#pragma unroll");
      writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", e, split_.reduction_width));
      emitter_.bind(lane_axis, e);
      emitter_.accumulate(accumulators);
      emitter_.load_text = nullptr;
      writer_.close();
    } else {
      emitter_.accumulate(accumulators);
    }
    emitter_.rewind(outside);
    writer_.close();
    for (const ExprEmitter::Accumulator& a : accumulators) {
      if (layout_.parts > 1) writer_.line(fmt::format("{} = {};", a.name, team_reduce(a)));
      if (step_ == Step::kPartial)
        writer_.line(fmt::format("if (threadIdx.x == 0) {}[blockIdx.x] = {};", partials(a), a.name));
      else
        emitter_.define(a.reduction, emitter_.result(a));
    }
    return true;
  }

  // Scratch memory with one partial result of this reduction for each block.
  std::string partials(const ExprEmitter::Accumulator& a) {
    const auto number = std::find(form_.reductions.begin(), form_.reductions.end(), a.reduction);
    return writer_.workspace(kPartialBytes * partial_blocks_,
                             static_cast<std::uint32_t>(number - form_.reductions.begin()), a.type + " partial");
  }

  void combine_partials(const ExprEmitter::Accumulator& a) {
    const std::string pointer = partials(a), i = writer_.unique("i");
    writer_.use("combine");
    writer_.open(fmt::format("for (int {0} = {1}; {0} < {2}; {0} += {3})", i, part_, partial_blocks_, layout_.parts));
    writer_.line(fmt::format("{0} = {1}({0}, {2}[{3}]);", a.name, a.combine, pointer, i));
    writer_.close();
    writer_.line(fmt::format("{} = {};", a.name, team_reduce(a)));
    emitter_.define(a.reduction, emitter_.result(a));
  }

  using Outputs = std::vector<const KernelOutput*>;

  static std::vector<ExprId> roots_of_outputs(const Outputs& outputs) {
    std::vector<ExprId> roots;
    for (const KernelOutput* output : outputs) roots.push_back(output->expr);
    return roots;
  }

  std::size_t columns_with_extent() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(form_.columns, [&](std::uint32_t a) { return !form_.kernel.pool.extent(a).is(1); }));
  }

  // Outputs with an element a row.
  void store_row(const Outputs& outputs) {
    const std::vector<std::string> values = emitter_.emit(roots_of_outputs(outputs));
    writer_.open(active_.empty() ? fmt::format("if ({} == 0)", part_)
                                 : fmt::format("if ({} == 0 && {})", part_, active_));
    for (std::size_t i = 0; i < outputs.size(); ++i) store_scalar(*outputs[i], values[i]);
    writer_.close();
  }

  void store_scalar(const KernelOutput& output, const std::string& value) {
    const IndexExpr at = simplify(flat_index(output.type.shape, output.index), form_.kernel.pool.bounds());
    writer_.line(store_text(writer_, output, emitter_.index(at), value));
  }

  // In the loop over columns: an output that lacks some of them is stored where these are 0.
  void store_where_it_runs(const KernelOutput& output, const std::string& value) {
    std::string condition;
    for (const std::uint32_t a : columns_without(form_, output))
      condition += fmt::format("{}{} == 0", condition.empty() ? "" : " && ", emitter_.index(IndexExpr::axis(a)));
    if (!condition.empty()) writer_.open(fmt::format("if ({})", condition));
    store_scalar(output, value);
    if (!condition.empty()) writer_.close();
  }

  void store_columns(const Outputs& outputs) {
    std::vector<std::uint32_t> axes = form_.columns;
    const int width = split_.column_width;
    const std::uint32_t lane_axis = axes.back();
    if (width > 1) axes.pop_back();
    const std::vector<ExprId> roots = roots_of_outputs(outputs);
    if (!active_.empty()) writer_.open(fmt::format("if ({})", active_));
    const ExprEmitter::Mark outside = emitter_.mark();
    open_loop(axes, "j");
    if (width > 1) {
      VectorLoads loads(emitter_, graph_, lane_axis, width);
      const std::string e = writer_.unique("e");
      loads.declare(roots, e);
      std::vector<VectorStore> stores;
      for (const KernelOutput* output : outputs)
        stores.push_back(VectorStore::plan(emitter_, *output, lane_axis, width));
      emitter_.emit_independent(roots);
      writer_.line("#pragma unroll");
      writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", e, width));
      const ExprEmitter::Mark lanes = emitter_.mark();
      emitter_.bind(lane_axis, e);
      const std::vector<std::string> values = emitter_.emit(roots);
      for (std::size_t i = 0; i < stores.size(); ++i) stores[i].put(emitter_, e, values[i]);
      emitter_.rewind(lanes);
      writer_.close();
      for (VectorStore& store : stores) store.finish(emitter_);
      emitter_.load_text = nullptr;
    } else {
      const std::vector<std::string> values = emitter_.emit(roots);
      for (std::size_t i = 0; i < outputs.size(); ++i) store_where_it_runs(*outputs[i], values[i]);
    }
    emitter_.rewind(outside);
    writer_.close();
    if (!active_.empty()) writer_.close();
  }

  const RowForm& form_;
  const Graph& graph_;
  const Layout& layout_;
  const Split& split_;
  Step step_;
  int partial_blocks_;
  KernelWriter writer_;
  ExprEmitter emitter_;
  std::string part_;
  std::string active_;  // column teams: is the row a real one
};

// The contiguous row axis last, so that neighbouring threads read neighbouring elements.
RowForm with_contiguous_row_last(RowForm form, std::uint32_t axis) {
  if (form.rows.empty() || form.rows.back() == axis) return form;
  std::erase(form.rows, axis);
  form.rows.push_back(axis);
  return form;
}

}  // namespace

std::vector<KernelSource> row_reduction(const Kernel& kernel, const Graph& graph, const Target& target) {
  std::optional<RowForm> form = row_form(kernel, graph);
  if (!form) return {};
  const Direction direction = direction_of(*form, graph);
  const ExprPool& pool = form->kernel.pool;
  if (form->columns.empty()) {
    std::int64_t longest = 0;
    for (const ExprId r : form->reductions)
      longest = std::max(longest, value_at_hint(length_of(pool, r), pool.bounds().symbols));
    if (direction.product || longest <= kSmallWindow) return {};
    if (direction.along_rows == 0 && direction.along_reduction == 0 && longest <= 8 * kSmallWindow) return {};
  }
  const Layout layout = choose_layout(*form, direction, target);
  if (layout.team == Team::kColumn) *form = with_contiguous_row_last(std::move(*form), direction.contiguous_row);
  Split split;
  RowForm ready = split_vectors(*form, graph, layout, split);
  ready.reductions = row_reductions(ready.kernel);  // the copy has them under new ids
  const IndexExpr threads = point_count(ready.kernel.pool, ready.rows) * layout.parts;
  const bool wide = needs_wide_index(ready.kernel, graph, threads) || needs_wide_index(kernel, graph, threads);
  if (const int blocks = blocks_for_partials(ready, target); blocks > 1) {
    const Layout partial{Team::kBlock, 256, 1, 256};
    return {RowEmitter(ready, graph, partial, split, wide, Step::kPartial, blocks).emit(kernel),
            RowEmitter(ready, graph, partial, split, wide, Step::kFinal, blocks).emit(kernel)};
  }
  return {RowEmitter(ready, graph, layout, split, wide).emit(kernel)};
}

}  // namespace fusec
