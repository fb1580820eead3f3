#include "codegen/access/direct.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/kernel/loads.h"
#include "ir/type.h"
#include "schedule/kernel_forms.h"

namespace fusec {
namespace {

// True if a thread reads one position and no window. With several positions, 64-bit address conversions cost more than
// the saved divisions.
bool reads_one_place(const Kernel& kernel) {
  const std::vector<ExprId> nodes = reachable(kernel.pool, roots_of(kernel));
  const auto are = [&](ExprOp op) {
    return std::ranges::count_if(nodes, [&](ExprId id) { return kernel.pool[id].op == op; });
  };
  return are(ExprOp::kReduce) == 0 && are(ExprOp::kLoad) <= 1;
}

bool divides(const IndexExpr& e) {
  return std::ranges::any_of(e.terms(), [](const IndexTerm& term) {
    return std::ranges::any_of(term.factors, [](const IndexAtomPtr& factor) {
      return factor->kind == IndexAtom::Kind::kFloorDiv || factor->kind == IndexAtom::Kind::kMod;
    });
  });
}

// True if the kernel divides an index, to find its axes or the position of a load or store.
bool divides_indices(const Kernel& kernel, const KernelWriter& writer, const std::vector<std::uint32_t>& axes) {
  const ExprPool& pool = kernel.pool;
  if (std::ranges::count_if(axes, [&](std::uint32_t axis) { return !pool.extent(axis).is(1); }) > 1) return true;
  const auto at = [&](const std::vector<IndexExpr>& shape, const std::vector<IndexExpr>& indices) {
    return divides(simplify(flat_index(shape, indices), pool.bounds()));
  };
  return std::ranges::any_of(reachable(pool, roots_of(kernel)),
                             [&](ExprId id) {
                               const ExprNode& e = pool[id];
                               return e.op == ExprOp::kLoad ? at(writer.tensor_type(e.source).shape, e.indices)
                                                            : std::ranges::any_of(e.indices, divides);
                             }) ||
         std::ranges::any_of(kernel.outputs, [&](const KernelOutput& o) { return at(o.type.shape, o.index); });
}

}  // namespace

CExpr flat_thread(const KernelWriter& writer, int threads) {
  const CExpr block = "blockIdx.x";
  return (writer.wide() ? cast("long long", block) : block) * threads + "threadIdx.x";
}

std::string open_flat_threads(KernelWriter& writer, const IndexText& text, const IndexExpr& count, int threads) {
  const std::string t = writer.declared("const " + writer.index_type(), "t", flat_thread(writer, threads));
  if (proves_multiple_of(count, threads, text.bounds)) return t;
  writer.open_if(CExpr(t) >= text.tight(count));
  writer.stop();
  writer.end();
  return t;
}

void bind_flat(ExprEmitter& emitter, const std::vector<std::uint32_t>& axes, const std::string& flat,
               std::string_view names) {
  const ExprPool& pool = emitter.kernel().pool;
  KernelWriter& writer = emitter.writer();
  if (flat != "0" && reads_one_place(emitter.kernel()) && divides_indices(emitter.kernel(), writer, axes))
    writer.run(call("__builtin_assume", {CExpr(flat) >= 0}));
  std::string rest = flat;
  for (std::size_t d = axes.size(); d-- > 0;) {
    const IndexExpr& extent = pool.extent(axes[d]);
    const std::string preferred_name = d < names.size() ? std::string(1, names[d]) : "i" + std::to_string(d);
    if (extent.is(1)) {
      emitter.bind(axes[d], "0");
      continue;
    }
    // The outermost axis with extent above 1 takes the remaining quotient.
    const bool last = std::all_of(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(d),
                                  [&](std::uint32_t a) { return pool.extent(a).is(1); });
    if (last) {
      emitter.bind(axes[d], rest);
      rest = "0";
      continue;
    }
    const std::string by = emitter.index_text().tight(extent);
    const std::string type = "const " + writer.index_type();
    emitter.bind(axes[d], writer.declared(type, preferred_name, CExpr(rest) % by));
    rest = writer.declared(type, "rest", CExpr(rest) / by);
  }
}

void store_scalars(ExprEmitter& emitter, const std::vector<std::string>& values) {
  std::vector<const KernelOutput*> outputs;
  for (const KernelOutput& output : emitter.kernel().outputs) outputs.push_back(&output);
  store_scalars(emitter, outputs, values);
}

void store_scalars(ExprEmitter& emitter, const std::vector<const KernelOutput*>& outputs,
                   const std::vector<std::string>& values, const std::string& condition) {
  KernelWriter& writer = emitter.writer();
  if (!condition.empty()) writer.open(fmt::format("if ({})", condition));
  for (std::size_t i = 0; i < outputs.size(); ++i)
    store_scalar(writer, *outputs[i], emitter.index(position_of(emitter.kernel().pool, *outputs[i])), values[i]);
  if (!condition.empty()) writer.close();
}

namespace {

// A thread makes two neighbours along the last axis, which has an even extent, so that each output byte is written
// whole. A tensor without dimensions has one element, in the low half of its byte.
void emit_pairs(ExprEmitter& emitter, const Kernel& kernel, const std::string& t) {
  KernelWriter& writer = emitter.writer();
  std::vector<std::string> bytes;
  for (const KernelOutput& output : kernel.outputs) {
    bytes.push_back("");
    if (bits(output.type.dtype) != 4) continue;
    bytes.back() = writer.declared("unsigned", "pair", 0);
  }
  const std::string e = writer.unique("e");
  writer.open_for("int", e, kernel.outputs[0].axes.empty() ? 1 : 2, 0);
  const std::string flat = writer.declared("const " + writer.index_type(), "at", CExpr(t) * 2 + e);
  const ExprEmitter::Mark mark = emitter.mark();
  bind_flat(emitter, kernel.outputs[0].axes, flat);
  const std::vector<std::string> values = emitter.emit(roots_of(kernel));
  for (std::size_t i = 0; i < kernel.outputs.size(); ++i) {
    const KernelOutput& output = kernel.outputs[i];
    writer.use(output.type.dtype);
    if (bytes[i].empty())
      store_scalar(writer, output, emitter.index(flat_index(output.type.shape, output.index)), values[i]);
    else
      writer.line(fmt::format("{} |= {} << (4 * {});", bytes[i], narrow(output.type.dtype, values[i]), e));
  }
  emitter.rewind(mark);
  writer.end();
  for (std::size_t i = 0; i < kernel.outputs.size(); ++i)
    if (!bytes[i].empty())
      writer.assign(element(writer.output(kernel.outputs[i].value), t), cast("unsigned char", bytes[i]));
}

}  // namespace

KernelSource direct(const Kernel& kernel, const Graph& graph, const Target&) {
  const ExprPool& pool = kernel.pool;
  const std::vector<std::uint32_t>& axes = kernel.outputs.at(0).axes;
  const bool pairs = writes_half_bytes(kernel);
  const IndexExpr count = point_count(pool, axes);
  const IndexExpr threads = pairs ? simplify(ceil_div(count, 2), pool.bounds()) : count;
  KernelWriter writer(graph, needs_wide_index(kernel, graph, count));
  ExprEmitter emitter(kernel, writer);
  const std::string t = open_flat_threads(writer, emitter.index_text(), threads);
  if (pairs) {
    emit_pairs(emitter, kernel, t);
  } else {
    bind_flat(emitter, axes, t);
    store_scalars(emitter, emitter.emit(roots_of(kernel)));
  }
  writer.tidy();
  KernelSource source = writer.finish(kernel_comment(graph, kernel), kPointwiseThreads);
  source.work = pairs ? "A thread makes two neighbouring elements." : "A thread makes one element.";
  source.name = kernel_name(graph, kernel.nodes);
  source.grid[0] = simplify(ceil_div(threads, kPointwiseThreads), pool.bounds());
  source.schedule = {KernelKind::kDirect};
  return source;
}

}  // namespace fusec
