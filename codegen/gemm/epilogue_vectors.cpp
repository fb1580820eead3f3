#include "codegen/gemm/epilogue_vectors.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/kernel/copy_expr.h"
#include "analysis/kernel/loads.h"
#include "codegen/access/direct.h"
#include "codegen/access/vector_access.h"
#include "codegen/expr/limit_unrolling.h"
#include "ir/type.h"

namespace fusec {
namespace {

// The loads of the epilogue, without those of the accumulators.
std::vector<ExprId> epilogue_operands(const Kernel& kernel) {
  const ExprPool& pool = kernel.pool;
  std::vector<ExprId> loads =
      reachable(pool, roots_of(kernel), [&](ExprId id) { return pool[id].op == ExprOp::kReduce; });
  std::erase_if(loads, [&](ExprId id) { return pool[id].op != ExprOp::kLoad; });
  std::ranges::sort(loads);
  return loads;
}

// True if, in all outputs, one step along the axis equals `elements` elements: the axis continues where later axes end.
bool continues(const Kernel& kernel, std::uint32_t axis, const IndexExpr& elements) {
  return std::ranges::all_of(kernel.outputs, [&](const KernelOutput& output) {
    const IndexExpr at = position_of(kernel.pool, output);
    const IndexExpr next = substitute(at, [&](Variable v) -> std::optional<IndexExpr> {
      if (v.kind != Variable::Kind::kAxis || v.id != axis) return std::nullopt;
      return IndexExpr::axis(axis) + 1;
    });
    return simplify(next - at - elements, kernel.pool.bounds()).is(0);
  });
}

// The number of last column axes to merge so that their extent is a multiple of eight: images of 28 by 28 have no rows
// of eights, but have whole eights together. 0 if there is no such number.
std::size_t last_columns(const Kernel& kernel, const Contraction& contraction) {
  const ExprPool& pool = kernel.pool;
  IndexExpr count = 1;
  for (std::size_t last = 1; last <= contraction.columns.size(); ++last) {
    const std::uint32_t axis = contraction.columns[contraction.columns.size() - last];
    if (last > 1 && !continues(kernel, axis, count)) return 0;
    count = simplify(count * pool.extent(axis), pool.bounds());
    if (proves_multiple_of(count, kEpilogueVectorWidth, pool.bounds())) return last;
  }
  return 0;
}

// Splits the merged axes into one axis of eights and a lane. `now` maps old axes to new ones; the last merged axis maps
// to the axis of eights.
AxisChange eights_of(const Kernel& kernel, const std::vector<std::uint32_t>& merged, int width, ExprPool& pool,
                     EpilogueVectors& made, std::map<std::uint32_t, std::uint32_t>& now) {
  AxisChange change;
  IndexExpr flat = 0;
  const auto is_merged = [&](std::uint32_t a) { return std::ranges::find(merged, a) != merged.end(); };
  if (!merged.empty()) {
    IndexExpr count = 1;
    for (const std::uint32_t a : merged) count *= kernel.pool.extent(a);
    now[merged.back()] = pool.new_axis(simplify(floor_div(count, width), pool.bounds()));
    made.lane = pool.new_axis(width);
    flat = IndexExpr::axis(now[merged.back()]) * width + IndexExpr::axis(made.lane);
  }
  for (const std::uint32_t a : kernel.outputs[0].axes) {
    if (is_merged(a)) {
      IndexExpr below = 1;  // the extent of the later axes
      for (std::size_t i = merged.size(); i-- > 0 && merged[i] != a;) below *= kernel.pool.extent(merged[i]);
      IndexExpr value = floor_div(flat, below);
      if (a != merged.front()) value = floor_mod(value, kernel.pool.extent(a));
      change.values.push_back(simplify(value, pool.bounds()));
      if (a != merged.back()) continue;
      change.new_axes.push_back(now[a]);
      change.new_axes.push_back(made.lane);
    } else {
      now[a] = pool.new_axis(kernel.pool.extent(a));
      change.new_axes.push_back(now[a]);
      change.values.push_back(IndexExpr::axis(now[a]));
    }
  }
  return change;
}

}  // namespace

int epilogue_vector_width(const Kernel& kernel, const Contraction& contraction) {
  return last_columns(kernel, contraction) == 0 ? 1 : kEpilogueVectorWidth;
}

EpilogueVectors with_epilogue_vectors(const Kernel& kernel, const Contraction& contraction,
                                      const std::map<ExprId, std::string>& accumulators, int width,
                                      const std::map<ExprId, std::string>& known) {
  EpilogueVectors made;
  made.width = width;
  std::vector<ExprId> reductions;
  for (const auto& [reduction, sum] : accumulators) reductions.push_back(reduction);
  for (const auto& [value, text] : known) reductions.push_back(value);
  // The axes that are merged and split into eights.
  const std::size_t merged_axes = width > 1 ? last_columns(kernel, contraction) : 0;
  const std::vector<std::uint32_t> merged(contraction.columns.end() - static_cast<std::ptrdiff_t>(merged_axes),
                                          contraction.columns.end());
  std::map<std::uint32_t, std::uint32_t> now;
  made.kernel = change_axes(
      kernel,
      [&](ExprPool& pool, ExprCopier& copier) {
        AxisChange change = eights_of(kernel, merged, width, pool, made, now);
        if (contraction.expert_index) made.unit_axes.push_back(copier.copy_axis(contraction.expert_index->axis));
        return change;
      },
      reductions);
  std::size_t i = 0;
  for (const auto& [reduction, sum] : accumulators) made.accumulators[reductions[i++]] = sum;
  for (const auto& [value, text] : known) made.known[reductions[i++]] = text;
  const auto renamed = [&](const std::vector<std::uint32_t>& old) {
    std::vector<std::uint32_t> list;
    for (const std::uint32_t a : old)
      if (now.contains(a)) list.push_back(now.at(a));
    return list;
  };
  made.batch = renamed(contraction.batch);
  made.rows = renamed(contraction.rows);
  made.columns = renamed(contraction.columns);
  for (const std::uint32_t a : renamed(contraction.shared_rest)) made.unit_axes.push_back(a);
  return made;
}

void emit_epilogue_vector(ExprEmitter& emitter, const Graph& graph, std::uint32_t lane_axis, int width,
                          const std::map<ExprId, std::string>& names, const std::vector<std::string>& elsewhere,
                          bool in_registers) {
  KernelWriter& writer = emitter.writer();
  const Kernel& kernel = emitter.kernel();
  const std::vector<ExprId> roots = roots_of(kernel);
  // Defines the accumulators, so that nothing of the GEMM is computed again before the loop over lanes.
  for (const auto& [reduction, name] : names) emitter.define(reduction, name + "[0]");
  VectorLoads loads(emitter, graph, lane_axis, width);
  loads.parts_of_words = true;
  const std::string lane = writer.unique("e");
  loads.declare(epilogue_operands(kernel), lane);
  std::vector<VectorStore> stores;
  for (std::size_t i = 0; i < kernel.outputs.size(); ++i) {
    const KernelOutput& output = kernel.outputs[i];
    stores.push_back(i < elsewhere.size() && !elsewhere[i].empty()
                         ? VectorStore::elsewhere(emitter, output, width, elsewhere[i])
                         : VectorStore::plan(emitter, output, lane_axis, width));
  }
  emitter.emit_independent(roots);
  writer.line(in_registers ? "#pragma unroll" : kUnrollToFit);
  writer.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", lane, width));
  const ExprEmitter::Mark mark = emitter.mark();
  emitter.bind(lane_axis, lane);
  for (const auto& [reduction, name] : names) emitter.define(reduction, fmt::format("{}[{}]", name, lane));
  const std::vector<std::string> values = emitter.emit(roots);
  for (std::size_t i = 0; i < stores.size(); ++i) stores[i].put(emitter, lane, values[i]);
  emitter.rewind(mark);
  writer.close();
  for (VectorStore& store : stores) store.finish(emitter);
  emitter.load_text = nullptr;
}

void emit_epilogue_scalar(ExprEmitter& emitter) {
  store_scalars(emitter, emitter.emit(roots_of(emitter.kernel())));
}

}  // namespace fusec
