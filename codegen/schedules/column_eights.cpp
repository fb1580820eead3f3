#include "codegen/schedules/column_eights.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/copy_expr.h"
#include "codegen/schedules/vector_access.h"
#include "ir/type.h"

namespace fusec {
namespace {

// What the outputs need apart from the sums: whose loads stand here.
std::vector<ExprId> operands_behind(const ColumnEights& eights) {
  const ExprPool& pool = eights.kernel.pool;
  std::vector<std::uint8_t> wanted(pool.size(), 0);
  for (const ExprId root : roots_of(eights.kernel)) wanted[root] = 1;
  std::vector<ExprId> loads;
  for (std::size_t i = pool.size(); i-- > 0;) {
    const auto id = static_cast<ExprId>(i);
    if (!wanted[id] || eights.sums.contains(id)) continue;
    if (pool[id].op == ExprOp::kLoad) loads.push_back(id);
    for (const ExprId a : pool[id].args)
      if (a != kNoExpr) wanted[a] = 1;
    for (const IndexExpr& e : pool[id].indices)
      for (const Variable v : variables_of(e))
        if (v.kind == Variable::Kind::kValue) wanted[v.id] = 1;
  }
  std::ranges::reverse(loads);
  return loads;
}

}  // namespace

int columns_together(const Kernel& kernel, const Product& product) {
  const ExprPool& pool = kernel.pool;
  const bool whole = proves_multiple_of(pool.extent(product.columns.back()), kColumnsTogether, pool.bounds());
  return whole ? kColumnsTogether : 1;
}

ColumnEights in_column_eights(const Kernel& kernel, const Product& product, const std::map<ExprId, std::string>& sums,
                              int width) {
  ColumnEights made;
  made.width = width;
  std::vector<ExprId> reductions;
  for (const auto& [reduction, sum] : sums) reductions.push_back(reduction);
  std::map<std::uint32_t, std::uint32_t> now;
  made.kernel = change_axes(
      kernel,
      [&](ExprPool& pool, ExprCopier&) {
        AxisChange change;
        for (const std::uint32_t a : kernel.outputs[0].axes) {
          const IndexExpr& extent = kernel.pool.extent(a);
          const bool split = a == product.columns.back() && width > 1;
          const std::uint32_t outer = pool.new_axis(split ? simplify(floor_div(extent, width), pool.bounds()) : extent);
          now[a] = outer;
          change.new_axes.push_back(outer);
          change.values.push_back(IndexExpr::axis(outer));
          if (!split) continue;
          made.lane = pool.new_axis(width);
          change.new_axes.push_back(made.lane);
          change.values.back() = IndexExpr::axis(outer) * width + IndexExpr::axis(made.lane);
        }
        return change;
      },
      reductions);
  std::size_t i = 0;
  for (const auto& [reduction, sum] : sums) made.sums[reductions[i++]] = sum;
  const auto renamed = [&](const std::vector<std::uint32_t>& old) {
    std::vector<std::uint32_t> list;
    for (const std::uint32_t a : old) list.push_back(now.at(a));
    return list;
  };
  made.batch = renamed(product.batch);
  made.rows = renamed(product.rows);
  made.columns = renamed(product.columns);
  made.ones = renamed(product.shared_rest);
  return made;
}

void finish_eight(ExprEmitter& emitter, const Graph& graph, const ColumnEights& eights,
                  const std::map<ExprId, std::string>& names) {
  KernelWriter& writer = emitter.writer();
  const std::vector<ExprId> roots = roots_of(eights.kernel);
  // So that nothing of the product is computed again ahead of the lanes.
  for (const auto& [reduction, name] : names) emitter.define(reduction, name + ".v[0]");
  VectorLoads loads(emitter, graph, eights.lane, eights.width);
  const std::string lane = writer.unique("e");
  loads.declare(operands_behind(eights), lane);
  std::vector<VectorStore> stores;
  for (const KernelOutput& output : eights.kernel.outputs)
    stores.push_back(VectorStore::plan(emitter, output, eights.lane, eights.width));
  emitter.emit_independent(roots);
  writer.line("#pragma unroll");
  writer.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", lane, eights.width));
  const ExprEmitter::Mark mark = emitter.mark();
  emitter.bind(eights.lane, lane);
  for (const auto& [reduction, name] : names) emitter.define(reduction, fmt::format("{}.v[{}]", name, lane));
  const std::vector<std::string> values = emitter.emit(roots);
  for (std::size_t i = 0; i < stores.size(); ++i) stores[i].put(emitter, lane, values[i]);
  emitter.rewind(mark);
  writer.close();
  for (VectorStore& store : stores) store.finish(emitter);
  emitter.load_text = nullptr;
}

void finish_one(ExprEmitter& emitter, const ColumnEights& eights) {
  KernelWriter& writer = emitter.writer();
  const std::vector<std::string> values = emitter.emit(roots_of(eights.kernel));
  for (std::size_t i = 0; i < eights.kernel.outputs.size(); ++i) {
    const KernelOutput& output = eights.kernel.outputs[i];
    const IndexExpr at = simplify(flat_index(output.type.shape, output.index), eights.kernel.pool.bounds());
    writer.line(store_text(writer, output, emitter.index(at), values[i]));
  }
}

}  // namespace fusec
