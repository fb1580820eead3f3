#include "codegen/gemm/transformed_tile.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/kernel/copy_expr.h"
#include "codegen/access/direct.h"
#include "codegen/access/vector_access.h"
#include "ir/type.h"

namespace fusec {
namespace {

constexpr int kVector = 8;  // 16-bit elements in 16 bytes

// The neighbouring vectors of eight elements per line that a warp loads, of eight lines at a time, if lines are no
// multiple of eight vectors. In swizzled lines these are in different banks. Values per line (scales) are then read
// once for several vectors. 0: one line after the other.
int neighbours_across(const TileLoad& load, int threads) {
  const int vectors_per_line = load.places / kVector, across = vectors_per_line % 4 == 0   ? 4
                                                               : vectors_per_line % 2 == 0 ? 2
                                                                                           : 1;
  return vectors_per_line % 8 == 0 || load.lines % (threads / across) != 0 ? 0 : across;
}

}  // namespace

std::optional<TransformedTile> TransformedTile::plan(ExprEmitter& emitter, const Graph& graph, const TileLoad& load) {
  const Kernel& kernel = emitter.kernel();
  const ExprPool& from = kernel.pool;
  if (!load.narrowed || load.stride % kVector != 0 || load.places % kVector != 0 || !load.place0.empty() ||
      load.position_axes.size() != 1 || !proves_multiple_of(from.extent(load.position_axes[0]), kVector, from.bounds()))
    return std::nullopt;
  if (std::ranges::any_of(reachable(from, std::span(&load.operand, 1)),
                          [&](ExprId id) { return from[id].op == ExprOp::kReduce; }))
    return std::nullopt;
  TransformedTile made;
  made.kernel_.pool = ExprPool(from.bounds().symbols);
  made.kernel_.exact_steps = kernel.exact_steps;
  made.kernel_.numerics = kernel.numerics;
  ExprPool& to = made.kernel_.pool;
  ExprCopier copier(from, to);
  const std::uint32_t split = load.position_axes[0];
  made.places_.push_back(to.new_axis(simplify(floor_div(from.extent(split), kVector), from.bounds())));
  made.lane_ = to.new_axis(kVector);
  copier.axis[split] = IndexExpr::axis(made.places_[0]) * kVector + IndexExpr::axis(made.lane_);
  for (const std::uint32_t a : load.line_axes) {
    made.lines_.push_back(to.new_axis(from.extent(a)));
    copier.axis[a] = IndexExpr::axis(made.lines_.back());
  }
  for (const std::uint32_t a : emitter.axes_of(load.operand)) {
    if (a == split || contains(load.line_axes, a)) continue;
    made.others_.emplace_back(a, to.new_axis(from.extent(a)));
    copier.axis[a] = IndexExpr::axis(made.others_.back().second);
  }
  made.value_ = copier.copy(load.operand);
  if (to[made.value_].op == ExprOp::kRound && to[made.value_].dtype == *load.narrowed)
    made.value_ = to[made.value_].args[0];
  ExprEmitter trial(made.kernel_, emitter.writer());
  for (const std::uint32_t a : trial.axes_of(made.value_)) trial.bind(a, "0");
  if (VectorLoads(trial, graph, made.lane_, kVector).vector_loads({made.value_}).empty()) return std::nullopt;
  return made;
}

void TransformedTile::load(ExprEmitter& outer, const Graph& graph, const TileLoad& load, int threads,
                           const Place& place, bool ahead, int unrolled, const std::optional<Staged>& staged) const {
  KernelWriter& writer = outer.writer();
  ExprEmitter emitter(kernel_, writer);
  const ExprPool& pool = kernel_.pool;
  const int vectors_per_line = load.places / kVector;
  const std::string p = writer.unique("p"), line = writer.unique("line"), vector_index = writer.unique("eight");
  const std::string at = writer.unique("at"), made = writer.unique("made");
  writer.use("words");
  for (const auto& [given, mine] : others_) emitter.bind(mine, outer.index(IndexExpr::axis(given)));
  constexpr int kVectorsAtOnce = 4;
  ExprEmitter trial(kernel_, writer);
  for (const std::uint32_t a : trial.axes_of(value_)) trial.bind(a, "0");
  const int vectors = load.lines * vectors_per_line;
  // If the stride is an odd number of vectors, the vectors of eight lines are in different banks, as in swizzled lines.
  const bool swizzled = place || load.stride / kVector % 2 == 1;
  const int across = swizzled ? neighbours_across(load, threads) : 0;
  const bool several_at_once =
      ahead && (across || vectors % (kVectorsAtOnce * threads) == 0) && dequantize_of(trial, graph, *load.narrowed);
  const std::string each = writer.unique("each");
  if (across) {
    const int lines = threads / across, steps = vectors_per_line / across;
    const std::string step = writer.unique("step");
    writer.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", each, load.lines / lines));
    writer.line(
        fmt::format("const int {} = threadIdx.x / {} * 8 + threadIdx.x % 8 + {} * {};", line, 8 * across, each, lines));
    if (several_at_once)
      writer.line(fmt::format("#pragma unroll {}", steps <= kVectorsAtOnce + 1 ? steps : kVectorsAtOnce));
    else if (unrolled > 0)
      writer.line(fmt::format("#pragma unroll {}", unrolled));
    writer.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", step, steps));
    writer.line(fmt::format("const int {} = threadIdx.x / 8 % {} + {} * {};", vector_index, across, step, across));
  } else if (several_at_once) {
    writer.line(fmt::format("#pragma unroll {}", kVectorsAtOnce));
    writer.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", each, vectors / threads));
    writer.line(fmt::format("const unsigned {} = threadIdx.x + {} * {};", p, each, threads));
  } else {
    if (unrolled > 0) writer.line(fmt::format("#pragma unroll {}", unrolled));
    writer.open(fmt::format("for (unsigned {0} = threadIdx.x; {0} < {1}; {0} += {2})", p, vectors, threads));
  }
  if (!across)
    writer.line(fmt::format("const int {0} = {1} / {2}, {3} = {1} % {2};", line, p, vectors_per_line, vector_index));
  writer.line(
      fmt::format("const {} {} = {}{};", writer.index_type(), at, load.line0 == "0" ? "" : load.line0 + " + ", line));
  const auto count = [&](const std::vector<std::uint32_t>& axes) {
    return simplify(point_count(pool, axes), pool.bounds());
  };
  const auto text = [&](const IndexExpr& e) { return emitter.index_text().tight(e); };
  std::string there = fmt::format("{} < {}", at, text(count(lines_)));
  if (!count(places_).is(vectors_per_line)) there += fmt::format(" && {} < {}", vector_index, text(count(places_)));
  writer.line(fmt::format("Words<{}> {} = {{}};", kVector / 2, made));
  if (!several_at_once) writer.open(fmt::format("if ({})", there));
  const auto inside = [&](const std::string& number, const std::vector<std::uint32_t>& axes) {
    return several_at_once
               ? fmt::format("min(({0}){1}, ({0})({2} - 1))", writer.index_type(), number, text(count(axes)))
               : number;
  };
  bind_flat(emitter, lines_, inside(at, lines_), "mnopq");
  bind_flat(emitter, places_, count(places_).is(vectors_per_line) ? vector_index : inside(vector_index, places_),
            "kluvw");
  const Words words = [&](ExprId id) {
    if (!staged || pool[id].source != staged->source) return std::string();
    const int bytes = bits(pool[id].dtype);  // of eight elements
    return fmt::format("load_words<{}>({} + {} * {} + {} * {})", bytes / 4, staged->tile, line, staged->stride,
                       vector_index, bytes);
  };
  if (const auto quantized = dequantize_of(emitter, graph, *load.narrowed))
    compute_dequantized(*quantized, emitter, graph, *load.narrowed, made, words);
  else
    compute_elements(emitter, graph, *load.narrowed, made, words);
  if (several_at_once)
    writer.line(fmt::format("if (!({})) {} = {{}};", there, made));
  else
    writer.close();
  const std::string target =
      place ? place(line, vector_index)
            : fmt::format("{} + {} * {} + {} * {}", load.tile, line, load.stride, vector_index, kVector);
  writer.line(fmt::format("store_words({}, {});", target, made));
  writer.close();
  if (across) writer.close();
}

// Returns the dequantization if one access loads all eight quantized values and they share one scale.
std::optional<Dequantize> TransformedTile::dequantize_of(ExprEmitter& emitter, const Graph& graph,
                                                         DType narrowed) const {
  auto quantized = find_dequantize(emitter, value_, narrowed, lane_);
  if (!quantized || quantized->per_element_scale) return std::nullopt;
  if (VectorLoads(emitter, graph, lane_, kVector).vector_loads({quantized->quantized}).empty()) return std::nullopt;
  return quantized;
}

// Dequantizes two values at a time.
void TransformedTile::compute_dequantized(const Dequantize& quantized, ExprEmitter& emitter, const Graph& graph,
                                          DType narrowed, const std::string& made, const Words& words) const {
  KernelWriter& writer = emitter.writer();
  VectorLoads loads(emitter, graph, lane_, kVector);
  const std::string name = writer.unique("codes");
  writer.line(fmt::format("{} {};", loads.vector_loads({quantized.quantized})[0].second, name));
  loads.declare({quantized.quantized}, "0", [&](ExprId id, const VectorLoads::Fill& fill) {
    if (const std::string staged = words(id); !staged.empty())
      writer.assign(name, staged);
    else
      fill(name);
    return name;
  });
  emitter.load_text = nullptr;
  const std::string zero = zero_text(quantized, narrowed, emitter);
  const std::string scale = scale_text(quantized, narrowed, emitter);
  writer.line(
      fmt::format("{} = {};", made, dequantize_text(quantized, narrowed, kVector / 2, name, zero, scale, writer)));
}

void TransformedTile::compute_elements(ExprEmitter& emitter, const Graph& graph, DType narrowed,
                                       const std::string& made, const Words& words) const {
  const ExprPool& pool = kernel_.pool;
  KernelWriter& writer = emitter.writer();
  const std::string lane = writer.unique("e");
  VectorLoads loads(emitter, graph, lane_, kVector);
  loads.declare({value_}, lane, [&](ExprId id, const VectorLoads::Fill&) {
    const std::string staged = words(id);
    if (staged.empty()) return staged;
    return writer.declared("const auto", writer.preferred_name(pool[id].source) + "_w", staged);
  });
  emitter.emit_independent({value_});
  const bool packs = pool[value_].type == ScalarType::kFloat32;
  const std::string values = writer.unique("values");
  if (packs) writer.line(fmt::format("float {}[{}];", values, kVector));
  writer.open_unrolled(lane, kVector);
  emitter.bind(lane_, lane);
  const std::string value = emitter.emit(value_);
  writer.line(packs ? fmt::format("{}[{}] = {};", values, lane, value) : put_text(narrowed, made, lane, value, writer));
  writer.close();
  if (packs) {
    writer.use("packed_words");
    writer.line(fmt::format("{} = {}_words({});", made, short_name(narrowed), values));
  }
}

}  // namespace fusec
