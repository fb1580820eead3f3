#include "codegen/convolution/sliding_window.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "codegen/access/direct.h"
#include "codegen/expr/emit_expr.h"
#include "ir/type.h"

namespace fusec {
namespace {

using SlidingWindowPoint = SlidingWindow::Point;
using Accumulator = ExprEmitter::Accumulator;

class SlidingWindowEmitter {
 public:
  SlidingWindowEmitter(const SlidingWindow& windows, const Graph& graph)
      : w_(windows),
        kernel_(windows.kernel),
        pool_(kernel_.pool),
        graph_(graph),
        threads_(point_count(pool_, axes_of_threads())),
        writer_(graph, needs_wide_index(kernel_, graph, threads_)),
        emitter_(kernel_, writer_) {}

  KernelSource emit() {
    const std::string t = open_flat_threads(writer_, emitter_.index_text(), threads_, SlidingWindow::kThreads);
    bind_flat(emitter_, axes_of_threads(), t);
    const std::string at = writer_.unique("at");
    const IndexExpr place = IndexExpr::axis(w_.tiles) * w_.steps;
    const IndexExpr last = pool_.extent(w_.sliding_axis) - w_.steps;
    writer_.line(
        fmt::format("const {} {} = {};", writer_.index_type(), at, text(w_.clipped ? min(place, last) : place)));
    emitter_.bind(w_.first, at);
    first_ = at;
    emitter_.emit_independent(roots_of(kernel_));
    for (int step = 0; step < w_.steps; ++step) emit_result(step);
    KernelSource source = writer_.finish(kernel_comment(graph_, kernel_), SlidingWindow::kThreads);
    source.name = kernel_name(graph_, kernel_.nodes);
    source.grid[0] = simplify(ceil_div(threads_, SlidingWindow::kThreads), pool_.bounds());
    source.schedule = {KernelKind::kSlidingWindow};
    return source;
  }

 private:
  std::string text(const IndexExpr& e) { return emitter_.index(simplify(e, pool_.bounds())); }

  std::vector<std::uint32_t> axes_of_threads() const {
    std::vector<std::uint32_t> axes = kernel_.outputs[0].axes;
    std::ranges::replace(axes, w_.sliding_axis, w_.tiles);
    return axes;
  }

  void emit_result(int step) {
    std::map<ExprId, std::string> reduced;
    for (const ExprId r : w_.reductions) reduced[r] = w_.slid.contains(r) ? of_rows(r, step) : of_window(r, step);
    const ExprEmitter::Mark mark = emitter_.mark();
    bind_to({.step = step});
    for (const auto& [r, name] : reduced) emitter_.define(r, name);
    define_loads(roots_of(kernel_), {.step = step});
    const std::vector<std::string> values = emitter_.emit(roots_of(kernel_));
    // Only one thread stores each result.
    const bool some = w_.clipped ? step + 1 < w_.steps : !w_.whole && step > 0;
    if (some)
      writer_.open(w_.clipped
                       ? fmt::format("if ({} + {} >= {})", first_, step, text(IndexExpr::axis(w_.tiles) * w_.steps))
                       : fmt::format("if ({} + {} < {})", first_, step, text(pool_.extent(w_.sliding_axis))));
    store_scalars(emitter_, values);
    if (some) writer_.close();
    emitter_.rewind(mark);
  }

  // Combines the rows of the window. Each row is reduced on first use.
  std::string of_rows(ExprId reduction, int step) {
    const Accumulator sum = emitter_.accumulator(reduction);
    writer_.use("combine");
    std::string value;
    for (std::int64_t row = 0; row < *pool_.extent(w_.slid.at(reduction)).as_constant(); ++row) {
      std::string& known = rows_[{reduction, row_key(w_, reduction, step, row)}];
      if (known.empty()) known = of_row(reduction, step, row);
      value = value.empty() ? known : fmt::format("{}({}, {})", sum.combine, value, known);
    }
    writer_.line(fmt::format("const {} {} = {};", sum.type, sum.name, value));
    return sum.name;
  }

  // Checks conditions that hold for all columns of a row once per row.
  std::string of_row(ExprId reduction, int step, std::int64_t row) {
    std::vector<SlidingWindowPoint> points = points_of(w_, reduction, step, row);
    const std::vector<IndexComparison> inside = conditions_of_row(w_, reduction, step, row);
    if (inside.empty()) return reduce(reduction, points);
    for (SlidingWindowPoint& p : points) p.known = inside;
    const Accumulator sum = emitter_.accumulator(reduction);
    writer_.line(fmt::format("{} {} = {};", sum.type, sum.name, sum.identity));
    const std::string there = condition(inside);
    // Declarations inside this block are not visible after it.
    const auto conditions = conditions_;
    const auto pointers = pointers_;
    const auto loaded = loaded_;
    writer_.open(fmt::format("if ({})", there));
    writer_.line(fmt::format("{} = {};", sum.name, reduce(reduction, points)));
    writer_.close();
    conditions_ = conditions, pointers_ = pointers, loaded_ = loaded;
    return sum.name;
  }

  std::string of_window(ExprId reduction, int step) {
    return reduce(reduction, points_of(w_, reduction, step, std::nullopt));
  }

  // A variable with the reduction's value over some points.
  std::string reduce(ExprId reduction, const std::vector<SlidingWindowPoint>& points) {
    const Accumulator sum = emitter_.accumulator(reduction);
    for (const SlidingWindowPoint& p : points) {
      const ExprEmitter::Mark mark = emitter_.mark();
      const ExprId body = pool_[reduction].args[0];
      bind_to(p);
      define_loads({body}, p);
      if (&p == &points.front())
        writer_.line(fmt::format("{} {} = {};", sum.type, sum.name, emitter_.emit(body)));
      else
        emitter_.accumulate({sum});
      emitter_.rewind(mark);
    }
    return sum.name;
  }

  void bind_to(const SlidingWindowPoint& p) {
    emitter_.bind(w_.sliding_axis, p.step == 0 ? first_ : fmt::format("({} + {})", first_, p.step));
    for (std::size_t i = 0; i < p.elements.size(); ++i) emitter_.bind((*p.axes)[i], std::to_string(p.elements[i]));
  }

  // Defines the loads of the roots at a point, and the conditions and positions that are constant or simpler there.
  void define_loads(const std::vector<ExprId>& roots, const SlidingWindowPoint& p) {
    const std::vector<ExprId> nodes =
        reachable(pool_, roots, [&](ExprId id) { return pool_[id].op == ExprOp::kReduce; });
    for (const ExprId id : nodes) {
      const ExprNode& n = pool_[id];
      if (n.op == ExprOp::kLoad && std::ranges::binary_search(w_.loads, id)) {
        const LoadPosition position_of_load = load_position(w_, graph_, id, p);
        if (n.args[0] != kNoExpr) emitter_.define(n.args[0], condition(position_of_load.guards));
        emitter_.define(id, loaded(n, position_of_load));
      } else if (n.op == ExprOp::kIndex && depends(id)) {
        emitter_.define(id, fmt::format("(long long)({})", text(index_at(w_, n.indices[0], p))));
      }
    }
  }

  bool depends(ExprId id) const { return emitter_.depends_on(id, w_.sliding_axis); }

  // A variable that tells whether all comparisons hold.
  std::string condition(const std::vector<IndexComparison>& comparisons) {
    if (comparisons.empty()) return "true";
    std::string& name = conditions_[comparisons];
    if (!name.empty()) return name;
    std::string all;
    for (const IndexComparison& c : comparisons)
      all +=
          fmt::format("{}{} {} {}", all.empty() ? "" : " && ", text(c.difference), c.at_least ? ">=" : "<=", c.bound);
    name = writer_.unique("inside");
    writer_.line(fmt::format("const bool {} = {};", name, all));
    return name;
  }

  // A variable with the element, 0 if its mask is false.
  std::string loaded(const ExprNode& load, const LoadPosition& position_of_load) {
    std::string& name = loaded_[{load.source, position_of_load}];
    if (!name.empty()) return name;
    const std::int64_t ahead = position_of_load.position.constant_term();
    std::string& from = pointers_[{load.source, position_of_load.position - ahead}];
    if (from.empty()) {
      from = writer_.unique(writer_.preferred_name(load.source) + "_at");
      writer_.line(fmt::format("const {0}* const {1} = {2} + ({3});", storage_type(load.dtype), from,
                               writer_.input(load.source), text(position_of_load.position - ahead)));
    }
    writer_.use(load.dtype);
    const bool bfloat16 = load.dtype == DType::kBFloat16;
    if (bfloat16) writer_.use("single_bf16");
    const std::string stored = fmt::format("{}[{}]", from, ahead);
    const std::string value = bfloat16 ? fmt::format("from_single_bf16({})", stored) : widen(load.dtype, stored);
    name = writer_.unique(writer_.preferred_name(load.source) + "_v");
    if (position_of_load.guards.empty()) {
      writer_.line(fmt::format("const {} {} = {};", c_type(load.type), name, value));
    } else {
      const std::string there = condition(position_of_load.guards), read = writer_.unique(name + "_read");
      writer_.line(fmt::format("const {} {} = {};", c_type(load.type), read, value));
      writer_.line(fmt::format("const {} {} = {} ? {} : {};", c_type(load.type), name, there, read,
                               load.type == ScalarType::kBool ? "false" : zero_text(load.type)));
    }
    return name;
  }

  const SlidingWindow& w_;
  const Kernel& kernel_;
  const ExprPool& pool_;
  const Graph& graph_;
  const IndexExpr threads_;
  KernelWriter writer_;
  ExprEmitter emitter_;
  std::string first_;
  std::map<std::pair<ExprId, std::vector<IndexExpr>>, std::string> rows_;  // reduced window rows
  std::map<std::vector<IndexComparison>, std::string> conditions_;
  std::map<std::pair<ValueId, IndexExpr>, std::string> pointers_;
  std::map<std::pair<ValueId, LoadPosition>, std::string> loaded_;
};

}  // namespace

KernelSource emit_sliding_window(const SlidingWindow& windows, const Graph& graph) {
  return SlidingWindowEmitter(windows, graph).emit();
}

}  // namespace fusec
