#include "codegen/schedules/pointwise.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/copy_expr.h"
#include "analysis/kernel_forms.h"
#include "codegen/schedules/direct.h"
#include "codegen/schedules/vector_access.h"
#include "ir/type.h"

namespace fusec {
namespace {

bool has_division(const IndexExpr& e) {
  for (const IndexTerm& term : e.terms())
    for (const IndexAtomPtr& factor : term.factors)
      if (factor->kind != IndexAtom::Kind::kVariable) return true;
  return false;
}

// The last axis as groups of `width` neighbours: two axes, the group and the lane.
Kernel split_last_axis(const Kernel& kernel, int width) {
  return change_axes(kernel, [&](ExprPool& pool) {
    AxisChange change;
    const std::vector<std::uint32_t>& axes = kernel.outputs[0].axes;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const IndexExpr& extent = kernel.pool.extent(axes[i]);
      const bool last = i + 1 == axes.size();
      const std::uint32_t outer = pool.new_axis(last ? simplify(ceil_div(extent, width), pool.bounds()) : extent);
      change.new_axes.push_back(outer);
      if (!last) {
        change.values.push_back(IndexExpr::axis(outer));
        continue;
      }
      const std::uint32_t lane = pool.new_axis(width);
      change.new_axes.push_back(lane);
      change.values.push_back(IndexExpr::axis(outer) * width + IndexExpr::axis(lane));
    }
    return change;
  });
}

// Elements to a thread: 16 bytes of the narrowest dtype, at most 8 where others are wider.
int wanted_width(const Kernel& kernel) {
  int narrowest = 64, widest = 4;
  auto see = [&](DType d) {
    narrowest = std::min(narrowest, bits(d));
    widest = std::max(widest, bits(d));
  };
  for (const KernelOutput& output : kernel.outputs) see(output.type.dtype);
  for (const ExprId id : reachable(kernel.pool, roots_of(kernel)))
    if (kernel.pool[id].op == ExprOp::kLoad) see(kernel.pool[id].dtype);
  return std::clamp(128 / narrowest, 1, widest == narrowest ? 16 : widest <= 32 ? 8 : 4);
}

void store_scalars(ExprEmitter& emitter, const Kernel& kernel, const std::vector<std::string>& values) {
  KernelWriter& writer = emitter.writer();
  for (std::size_t i = 0; i < kernel.outputs.size(); ++i) {
    const KernelOutput& output = kernel.outputs[i];
    const IndexExpr at = simplify(flat_index(output.type.shape, output.index), kernel.pool.bounds());
    writer.line(store_text(writer, output, emitter.index(at), values[i]));
  }
}

// The lanes of one thread: loads of whole vectors, a loop over the lanes, stores of whole vectors.
void emit_vector(ExprEmitter& emitter, const Kernel& kernel, const Graph& graph, int width) {
  KernelWriter& writer = emitter.writer();
  const std::uint32_t lane_axis = kernel.outputs[0].axes.back();
  VectorLoads loads(emitter, graph, lane_axis, width);
  const std::string e = writer.unique("e");
  loads.declare(roots_of(kernel), e);
  std::vector<VectorStore> stores;
  for (const KernelOutput& output : kernel.outputs)
    stores.push_back(VectorStore::plan(emitter, output, lane_axis, width));
  emitter.emit_independent(roots_of(kernel));
  writer.line("#pragma unroll");
  writer.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", e, width));
  const ExprEmitter::Mark mark = emitter.mark();
  emitter.bind(lane_axis, e);
  const std::vector<std::string> values = emitter.emit(roots_of(kernel));
  for (std::size_t i = 0; i < stores.size(); ++i) stores[i].put(emitter, e, values[i]);
  emitter.rewind(mark);
  writer.close();
  for (VectorStore& store : stores) store.finish(emitter);
  emitter.load_text = nullptr;
}

// All lanes that are left, one by one.
void emit_tail(ExprEmitter& emitter, const Kernel& kernel, const std::string& group, const IndexExpr& count,
               int width) {
  KernelWriter& writer = emitter.writer();
  const std::uint32_t lane_axis = kernel.outputs[0].axes.back();
  const std::string e = writer.unique("e");
  writer.open(fmt::format("for (int {0} = 0; {1} * {2} + {0} < {3}; ++{0})", e, group, width,
                          emitter.index_text().tight(count)));
  const ExprEmitter::Mark mark = emitter.mark();
  emitter.bind(lane_axis, e);
  store_scalars(emitter, kernel, emitter.emit(roots_of(kernel)));
  emitter.rewind(mark);
  writer.close();
}

KernelSource vectorized(const Kernel& merged, const Graph& graph, int width) {
  const Bounds& old_bounds = merged.pool.bounds();
  const std::vector<std::uint32_t>& old_axes = merged.outputs[0].axes;
  const IndexExpr inner = merged.pool.extent(old_axes.back());
  const bool tail = !proves_multiple_of(inner, width, old_bounds);
  const IndexExpr count = point_count(merged.pool, old_axes);
  const Kernel kernel = split_last_axis(merged, width);
  const std::vector<std::uint32_t>& axes = kernel.outputs[0].axes;
  const std::vector<std::uint32_t> outer(axes.begin(), axes.end() - 1);
  const IndexExpr threads = point_count(kernel.pool, outer);
  KernelWriter writer(graph, needs_wide_index(merged, graph, count) || needs_wide_index(kernel, graph, count + width));
  ExprEmitter emitter(kernel, writer);
  const std::string t = open_flat_threads(writer, emitter.index_text(), threads);
  bind_flat(emitter, outer, t);
  if (tail) {
    const ExprEmitter::Mark mark = emitter.mark();
    writer.open(fmt::format("if ({0} * {1} + {1} <= {2})", t, width, emitter.index_text().tight(inner)));
    emit_vector(emitter, kernel, graph, width);
    emitter.rewind(mark);
    writer.close("} else {");
    writer.reopen();
    emit_tail(emitter, kernel, t, inner, width);
    emitter.rewind(mark);
    writer.close();
  } else {
    emit_vector(emitter, kernel, graph, width);
  }
  KernelSource source = writer.finish(kernel_comment(graph, merged), kPointwiseThreads);
  source.grid[0] = simplify(ceil_div(threads, kPointwiseThreads), kernel.pool.bounds());
  return source;
}

}  // namespace

std::size_t count_divisions(const Kernel& kernel, const Graph& graph) {
  std::size_t count = 0;
  const Bounds& bounds = kernel.pool.bounds();
  for (const ExprId id : reachable(kernel.pool, roots_of(kernel))) {
    const ExprNode& n = kernel.pool[id];
    if (n.op == ExprOp::kLoad)
      count += has_division(simplify(flat_index(graph.tensor(n.source).shape, n.indices), bounds));
    if (n.op == ExprOp::kIndex) count += has_division(n.indices[0]);
  }
  for (const KernelOutput& output : kernel.outputs)
    count += has_division(simplify(flat_index(output.type.shape, output.index), bounds));
  return count;
}

Kernel drop_unit_axes(const Kernel& kernel) {
  return change_axes(kernel, [&](ExprPool& pool) {
    AxisChange change;
    for (const std::uint32_t a : kernel.outputs[0].axes) {
      if (kernel.pool.extent(a).is(1)) {
        change.values.emplace_back(0);
        continue;
      }
      change.new_axes.push_back(pool.new_axis(kernel.pool.extent(a)));
      change.values.push_back(IndexExpr::axis(change.new_axes.back()));
    }
    return change;
  });
}

Kernel merge_pair(const Kernel& kernel, std::size_t first) {
  return change_axes(kernel, [&](ExprPool& pool) {
    AxisChange change;
    const std::vector<std::uint32_t>& axes = kernel.outputs[0].axes;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const IndexExpr& extent = kernel.pool.extent(axes[i]);
      if (i == first) {
        const IndexExpr& inner = kernel.pool.extent(axes[i + 1]);
        const IndexExpr both = IndexExpr::axis(pool.new_axis(extent * inner));
        change.new_axes.push_back(both.as_variable()->id);
        change.values.push_back(floor_div(both, inner));
        change.values.push_back(floor_mod(both, inner));
        ++i;
      } else {
        change.new_axes.push_back(pool.new_axis(extent));
        change.values.push_back(IndexExpr::axis(change.new_axes.back()));
      }
    }
    return change;
  });
}

Kernel merge_axes(const Kernel& kernel, const Graph& graph) {
  Kernel merged = drop_unit_axes(kernel);
  std::size_t divided = count_divisions(merged, graph);
  for (std::size_t i = merged.outputs[0].axes.size(); i-- > 1;) {
    const std::vector<std::uint32_t>& axes = merged.outputs[0].axes;
    const Range inner = range_of(merged.pool.extent(axes[i]), merged.pool.bounds());
    if (inner.min < 1) continue;  // nothing may be divided by an extent that can be 0
    Kernel candidate = merge_pair(merged, i - 1);
    const std::size_t now = count_divisions(candidate, graph);
    if (now > divided) continue;
    divided = now;
    merged = std::move(candidate);
  }
  return merged;
}

KernelSource pointwise(const Kernel& kernel, const Graph& graph, const Target& target) {
  const Kernel merged = merge_axes(kernel, graph);
  const std::vector<std::uint32_t>& axes = merged.outputs[0].axes;
  int width = axes.empty() ? 1 : wanted_width(merged);
  if (width > 1) {
    const IndexExpr& inner = merged.pool.extent(axes.back());
    // A tail is possible where the axis is the only one; else the extent must be a multiple.
    const bool flat = axes.size() == 1 && !writes_half_bytes(merged);
    while (width > 1 && !proves_multiple_of(inner, width, merged.pool.bounds()) && !flat) width /= 2;
    const auto points = inner.as_constant();
    if (points && *points < width) width = 1;
    if (width > 1 && !some_access_is_vector(merged, graph, width)) width = 1;
  }
  KernelSource source;
  if (width > 1 && !(writes_half_bytes(merged) && width < 8))
    source = vectorized(merged, graph, width);
  else
    source = direct(writes_half_bytes(merged) ? kernel : merged, graph, target);
  source.name = kernel_name(graph, kernel.nodes);
  source.schedule = "pointwise";
  return source;
}

}  // namespace fusec
