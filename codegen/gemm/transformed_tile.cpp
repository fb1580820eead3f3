#include "codegen/gemm/transformed_tile.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/kernel/copy_expr.h"
#include "codegen/access/direct.h"
#include "codegen/access/vector_access.h"
#include "ir/type.h"

namespace fusec {
namespace {

constexpr int kPiece = 8;  // 16-bit elements in 16 bytes

// The neighbouring vectors of eight elements per line that a warp loads, of eight lines at a time, if lines are no
// multiple of eight vectors. In swizzled lines these are in different banks. Values per line (scales) are then read
// once for several vectors. 0: one line after the other.
int neighbours_across(const TileLoad& load, int threads) {
  const int pieces = load.places / kPiece, across = pieces % 4 == 0 ? 4 : pieces % 2 == 0 ? 2 : 1;
  return pieces % 8 == 0 || load.lines % (threads / across) != 0 ? 0 : across;
}

}  // namespace

std::optional<TransformedTile> TransformedTile::plan(ExprEmitter& emitter, const Graph& graph, const TileLoad& load) {
  const Kernel& kernel = emitter.kernel();
  const ExprPool& from = kernel.pool;
  if (!load.narrowed || load.stride % kPiece != 0 || load.places % kPiece != 0 || !load.place0.empty() ||
      load.along_places.size() != 1 || !proves_multiple_of(from.extent(load.along_places[0]), kPiece, from.bounds()))
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
  const std::uint32_t split = load.along_places[0];
  made.places_.push_back(to.new_axis(simplify(floor_div(from.extent(split), kPiece), from.bounds())));
  made.lane_ = to.new_axis(kPiece);
  copier.axis[split] = IndexExpr::axis(made.places_[0]) * kPiece + IndexExpr::axis(made.lane_);
  for (const std::uint32_t a : load.along_lines) {
    made.lines_.push_back(to.new_axis(from.extent(a)));
    copier.axis[a] = IndexExpr::axis(made.lines_.back());
  }
  for (const std::uint32_t a : emitter.axes_of(load.operand)) {
    if (a == split || contains(load.along_lines, a)) continue;
    made.others_.emplace_back(a, to.new_axis(from.extent(a)));
    copier.axis[a] = IndexExpr::axis(made.others_.back().second);
  }
  made.value_ = copier.copy(load.operand);
  if (to[made.value_].op == ExprOp::kRound && to[made.value_].dtype == *load.narrowed)
    made.value_ = to[made.value_].args[0];
  ExprEmitter trial(made.kernel_, emitter.writer());
  for (const std::uint32_t a : trial.axes_of(made.value_)) trial.bind(a, "0");
  if (VectorLoads(trial, graph, made.lane_, kPiece).vector_loads({made.value_}).empty()) return std::nullopt;
  return made;
}

void TransformedTile::load(ExprEmitter& outer, const Graph& graph, const TileLoad& load, int threads,
                           const Place& place, bool ahead, int unrolled) const {
  KernelWriter& writer = outer.writer();
  ExprEmitter emitter(kernel_, writer);
  const ExprPool& pool = kernel_.pool;
  const int pieces = load.places / kPiece;
  const std::string p = writer.unique("p"), line = writer.unique("line"), eight = writer.unique("eight");
  const std::string at = writer.unique("at"), made = writer.unique("made");
  writer.use("words");
  for (const auto& [given, mine] : others_) emitter.bind(mine, outer.index(IndexExpr::axis(given)));
  constexpr int kTogether = 4;
  ExprEmitter trial(kernel_, writer);
  for (const std::uint32_t a : trial.axes_of(value_)) trial.bind(a, "0");
  const int eights = load.lines * pieces;
  // If the stride is an odd number of vectors, the vectors of eight lines are in different banks, as in swizzled lines.
  const bool turned = place || load.stride / kPiece % 2 == 1;
  const int across = turned ? neighbours_across(load, threads) : 0;
  const bool together =
      ahead && (across || eights % (kTogether * threads) == 0) && dequantize_of(trial, graph, *load.narrowed);
  const std::string each = writer.unique("each");
  if (across) {
    const int lines = threads / across, steps = pieces / across;
    const std::string step = writer.unique("step");
    writer.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", each, load.lines / lines));
    writer.line(
        fmt::format("const int {} = threadIdx.x / {} * 8 + threadIdx.x % 8 + {} * {};", line, 8 * across, each, lines));
    if (together)
      writer.line(fmt::format("#pragma unroll {}", steps <= kTogether + 1 ? steps : kTogether));
    else if (unrolled > 0)
      writer.line(fmt::format("#pragma unroll {}", unrolled));
    writer.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", step, steps));
    writer.line(fmt::format("const int {} = threadIdx.x / 8 % {} + {} * {};", eight, across, step, across));
  } else if (together) {
    writer.line(fmt::format("#pragma unroll {}", kTogether));
    writer.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", each, eights / threads));
    writer.line(fmt::format("const unsigned {} = threadIdx.x + {} * {};", p, each, threads));
  } else {
    if (unrolled > 0) writer.line(fmt::format("#pragma unroll {}", unrolled));
    writer.open(fmt::format("for (unsigned {0} = threadIdx.x; {0} < {1}; {0} += {2})", p, eights, threads));
  }
  if (!across) writer.line(fmt::format("const int {0} = {1} / {2}, {3} = {1} % {2};", line, p, pieces, eight));
  writer.line(
      fmt::format("const {} {} = {}{};", writer.index_type(), at, load.line0 == "0" ? "" : load.line0 + " + ", line));
  const auto count = [&](const std::vector<std::uint32_t>& axes) {
    return simplify(point_count(pool, axes), pool.bounds());
  };
  const auto text = [&](const IndexExpr& e) { return emitter.index_text().tight(e); };
  std::string there = fmt::format("{} < {}", at, text(count(lines_)));
  if (!count(places_).is(pieces)) there += fmt::format(" && {} < {}", eight, text(count(places_)));
  writer.line(fmt::format("Words<{}> {} = {{}};", kPiece / 2, made));
  if (!together) writer.open(fmt::format("if ({})", there));
  const auto inside = [&](const std::string& number, const std::vector<std::uint32_t>& axes) {
    return together ? fmt::format("min(({0}){1}, ({0})({2} - 1))", writer.index_type(), number, text(count(axes)))
                    : number;
  };
  bind_flat(emitter, lines_, inside(at, lines_), "mnopq");
  bind_flat(emitter, places_, count(places_).is(pieces) ? eight : inside(eight, places_), "kluvw");
  if (const auto quantized = dequantize_of(emitter, graph, *load.narrowed))
    compute_dequantized(*quantized, emitter, graph, *load.narrowed, made);
  else
    compute_elements(emitter, graph, *load.narrowed, made);
  if (together)
    writer.line(fmt::format("if (!({})) {} = {{}};", there, made));
  else
    writer.close();
  const std::string target =
      place ? place(line, eight) : fmt::format("{} + {} * {} + {} * {}", load.tile, line, load.stride, eight, kPiece);
  writer.line(fmt::format("store_words({}, {});", target, made));
  writer.close();
  if (across) writer.close();
}

// Returns the dequantization if one access loads all eight quantized values and they share one scale.
std::optional<Dequantize> TransformedTile::dequantize_of(ExprEmitter& emitter, const Graph& graph,
                                                         DType narrowed) const {
  auto quantized = find_dequantize(emitter, value_, narrowed, lane_);
  if (!quantized || quantized->per_element_scale) return std::nullopt;
  if (VectorLoads(emitter, graph, lane_, kPiece).vector_loads({quantized->quantized}).empty()) return std::nullopt;
  return quantized;
}

// Dequantizes two values at a time.
void TransformedTile::compute_dequantized(const Dequantize& quantized, ExprEmitter& emitter, const Graph& graph,
                                          DType narrowed, const std::string& made) const {
  KernelWriter& writer = emitter.writer();
  VectorLoads loads(emitter, graph, lane_, kPiece);
  const std::string name = writer.unique("codes");
  writer.line(fmt::format("{} {};", loads.vector_loads({quantized.quantized})[0].second, name));
  loads.declare({quantized.quantized}, "0", [&](ExprId, const VectorLoads::Fill& fill) {
    fill(name);
    return name;
  });
  emitter.load_text = nullptr;
  const std::string zero = zero_text(quantized, narrowed, emitter);
  const std::string scale = scale_text(quantized, narrowed, emitter);
  writer.line(
      fmt::format("{} = {};", made, dequantize_text(quantized, narrowed, kPiece / 2, name, zero, scale, writer)));
}

void TransformedTile::compute_elements(ExprEmitter& emitter, const Graph& graph, DType narrowed,
                                       const std::string& made) const {
  const ExprPool& pool = kernel_.pool;
  KernelWriter& writer = emitter.writer();
  const std::string lane = writer.unique("e");
  VectorLoads loads(emitter, graph, lane_, kPiece);
  loads.declare({value_}, lane);
  emitter.emit_independent({value_});
  const bool packs = pool[value_].type == ScalarType::kFloat32;
  const std::string values = writer.unique("values");
  if (packs) writer.line(fmt::format("float {}[{}];", values, kPiece));
  writer.line("#pragma unroll");
  writer.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", lane, kPiece));
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
