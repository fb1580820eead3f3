#include "codegen/convolution/nchw_stencil.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "codegen/access/direct.h"
#include "codegen/access/vector_access.h"
#include "codegen/convolution/nchw_stencil_emitter.h"
#include "codegen/gemm/epilogue_vectors.h"
#include "ir/type.h"

namespace fusec {
namespace {

using Accumulator = ExprEmitter::Accumulator;

constexpr std::int64_t kMostWritten = 800;  // unrolled multiply-adds

}  // namespace

std::string times(std::int64_t count, const std::string& i) {
  return count == 1 || i == "0" ? i : fmt::format("{} * {}", count, i);
}

std::string sum_of_terms(const std::vector<std::string>& terms) {
  std::string sum;
  for (const std::string& term : terms)
    if (term != "0") sum += (sum.empty() ? "" : " + ") + term;
  return sum.empty() ? "0" : sum;
}

std::string in_parentheses(const std::string& text) {
  return text.find(' ') == std::string::npos ? text : "(" + text + ")";
}

KernelSource NchwStencilEmitter::emit() {
  writer_.use("words");
  place_block();
  place_thread();
  declare_tiles();
  declare_accumulators();
  const bool in_steps = t_.points_per_stage < w_.points();
  if (in_steps) {
    from_ = writer_.unique("from");
    writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; {0} += {2})", from_, w_.points(), t_.points_per_stage));
    writer_.line(fmt::format("if ({} > 0) __syncthreads();", from_));
  }
  stage_weights();
  stage_places();
  writer_.line("__syncthreads();");
  add_up();
  if (in_steps) writer_.close();
  finish_results();
  KernelSource source = writer_.finish(comment(), t_.threads());
  source.name = kernel_name(graph_, original_.nodes);
  source.grid[0] = blocks();
  source.schedule = {KernelKind::kNchwStencil};
  return source;
}

bool NchwStencilEmitter::whole(const IndexExpr& extent, std::int64_t of_block) const {
  return proves_multiple_of(extent, of_block, pool_.bounds());
}

std::string NchwStencilEmitter::for_each(const std::string& i, std::int64_t count) {
  return fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", i, count);
}

std::string NchwStencilEmitter::open_each(const std::string& preferred_name, std::int64_t count,
                                          std::string_view unroll) {
  opened_.push_back(count > 1);
  if (count == 1) return "0";
  const std::string i = writer_.unique(preferred_name);
  if (!unroll.empty()) writer_.line(unroll);
  writer_.open(for_each(i, count));
  return i;
}

void NchwStencilEmitter::close_each(int loops) {
  for (; loops > 0; --loops) {
    if (opened_.back()) writer_.close();
    opened_.pop_back();
  }
}

std::vector<std::string> NchwStencilEmitter::comment() const {
  std::vector<std::string> lines = kernel_comment(graph_, original_);
  lines.push_back(fmt::format("A block makes {} x {} results of {} planes, a thread {} x {} of them.", t_.block_rows(),
                              t_.block_columns(), t_.planes, t_.rows, t_.columns));
  return lines;
}

void NchwStencilEmitter::place_block() {
  column0_ = row0_ = "0";
  std::string rest = "blockIdx.x";
  const auto take = [&](const IndexExpr& count, const std::string& preferred_name, int of_block) -> std::string {
    if (count.is(1)) return "0";
    const std::string name = writer_.unique(preferred_name), left = writer_.unique("rest");
    writer_.line(fmt::format("const {0} {1} = {2} % {3} * {4}, {5} = {2} / {3};", integer(), name,
                             rest == "blockIdx.x" ? "(int)blockIdx.x" : rest, text(count), of_block, left));
    rest = left;
    return name;
  };
  column0_ = take(across(), "column0", t_.block_columns());
  row0_ = take(down(), "row0", t_.block_rows());
  plane0_ = writer_.unique("plane0");
  writer_.line(fmt::format("const {} {} = {};", integer(), plane0_,
                           times(t_.planes, rest == "blockIdx.x" ? "(int)blockIdx.x" : rest)));
}

void NchwStencilEmitter::place_thread() {
  const int of_plane = t_.thread_columns * t_.thread_rows;
  const auto take = [&](int count, int below, const std::string& preferred_name) -> std::string {
    if (count == 1) return "0";
    const std::string name = writer_.unique(preferred_name), at = below == 1 ? "" : fmt::format(" / {}", below);
    const std::string beyond = below * count >= busy_threads() ? "" : fmt::format(" % {}", count);
    writer_.line(fmt::format("const int {} = threadIdx.x{}{};", name, at, beyond));
    return name;
  };
  column_ = take(t_.thread_columns, 1, "column");
  row_ = take(t_.thread_rows, t_.thread_columns, "row");
  plane_ = take(t_.planes, of_plane, "plane");
}

void NchwStencilEmitter::declare_tiles() {
  const auto declare = [&](ExprId id, const std::string& preferred_name, std::int64_t elements) {
    const std::string name = tiles_[id] = writer_.unique(preferred_name);
    writer_.line(
        fmt::format("__shared__ __align__(16) {} {}[{}];", c_type(pool_[id].type), name, (elements + 3) / 4 * 4));
  };
  for (const ExprId id : w_.staged) {
    declare(id, "places", w_.tile_elements());
    addresses_[id] = writer_.unique("places_at");
    writer_.line(
        fmt::format("const unsigned {} = (unsigned)__cvta_generic_to_shared({});", addresses_[id], tiles_[id]));
  }
  for (const ExprId id : w_.weights) declare(id, "weights", w_.weight_elements());
}

void NchwStencilEmitter::declare_accumulators() {
  for (const ExprId r : w_.reductions_of_vectors) {
    const Accumulator sum = accumulators_.emplace_back(results_.accumulator(r));
    writer_.line(fmt::format("{} {}[{}][{}][{}];", sum.type, sum.name, w_.members(), t_.rows, t_.columns));
    const std::string i = writer_.unique("i");
    writer_.line("#pragma unroll");
    writer_.line(fmt::format("{} (({}*){})[{}] = {};", for_each(i, w_.members() * t_.rows * t_.columns), sum.type,
                             sum.name, i, sum.identity));
  }
}

void NchwStencilEmitter::add_up() {
  writer_.use("load_staged");
  if (idle_threads()) writer_.open(fmt::format("if (threadIdx.x < {})", busy_threads()));
  const std::string point = open_each("point", t_.points_per_stage, "#pragma unroll 1");
  if (w_.taps() * w_.members() * t_.rows * t_.columns <= kMostWritten)
    add_all_rows(point);
  else
    add_row_by_row(point);
  close_each();
  if (idle_threads()) writer_.close();
}

void NchwStencilEmitter::add_all_rows(const std::string& point) {
  const StencilAxis rows = w_.rows.value_or(StencilAxis{});
  std::map<ExprId, std::string> taps, lines;
  for (const ExprId id : w_.weights) taps[id] = load_taps(id, times(rows.taps, point), rows.taps);
  const auto first = lines_of_thread(point);
  const std::string r = open_each("r", rows.reach(t_.rows));
  for (const ExprId id : w_.staged) lines[id] = load_line(id, first.at(id), r);
  const std::string u = open_each("u", rows.taps);
  std::string i = "0";
  if (r != "0") {
    i = writer_.unique("i");
    const std::string further = u == "0" ? r : fmt::format("{} - {}", r, times(rows.dilation, u));
    const std::string between =
        rows.stride == 1 ? "" : fmt::format(" || {} % {} != 0", in_parentheses(further), rows.stride);
    writer_.line(fmt::format("const int {} = {}{};", i, rows.stride == 1 ? further : in_parentheses(further),
                             rows.stride == 1 ? "" : fmt::format(" / {}", rows.stride)));
    writer_.line(fmt::format("if ({} < 0 || {} >= {}{}) continue;", further, i, t_.rows, between));
  }
  add_line(taps, lines, u, i);
  close_each(2);
}

void NchwStencilEmitter::add_row_by_row(const std::string& point) {
  const StencilAxis rows = w_.rows.value_or(StencilAxis{});
  std::map<ExprId, std::string> taps, lines;
  const auto first = lines_of_thread(point);
  const std::string u = open_each("u", rows.taps, "#pragma unroll 1");
  for (const ExprId id : w_.weights) taps[id] = load_taps(id, sum_of_terms({times(rows.taps, point), u}), 1);
  const std::string i = open_each("i", t_.rows);
  const std::string row = sum_of_terms({times(rows.stride, i), times(rows.dilation, u)});
  for (const ExprId id : w_.staged) lines[id] = load_line(id, first.at(id), row);
  add_line(taps, lines, "0", i);
  close_each(2);
}

std::string NchwStencilEmitter::load_taps(ExprId id, const std::string& at, std::int64_t rows) {
  const std::string name = writer_.unique("taps"), type = c_type(pool_[id].type);
  const std::int64_t members = w_.members(), points_per_stage = w_.members_per_weight_vector();
  writer_.line(fmt::format("{}{} {}[{}][{}][{}];",
                           points_per_stage > 1 ? fmt::format("__align__({}) ", 4 * points_per_stage) : "", type, name,
                           rows, w_.columns.taps, members));
  const std::string vector = points_per_stage == 1 ? type : fmt::format("{}{}", type, points_per_stage);
  const std::string u = open_each("u", rows), v = open_each("v", w_.columns.taps);
  const std::string m = open_each("m", members / points_per_stage), first = times(points_per_stage, m);
  const std::string row = in_parentheses(sum_of_terms({at, u}));
  const std::string from = times(members, in_parentheses(sum_of_terms({times(w_.columns.taps, row), v})));
  writer_.line(fmt::format("*({0}*)&{1}[{2}][{3}][{4}] = *(const {0}*)&{5}[{6}];", vector, name, u, v, first,
                           tiles_.at(id), sum_of_terms({times(w_.weights_per_plane(), plane_), from, first})));
  close_each(3);
  return name;
}

std::map<ExprId, std::string> NchwStencilEmitter::lines_of_thread(const std::string& point) {
  const std::int64_t rows = w_.rows ? t_.rows * w_.rows->stride : 0;
  const std::string plane = in_parentheses(sum_of_terms({times(t_.points_per_stage, plane_), point}));
  const std::string first = sum_of_terms({times(t_.plane, plane), rows == 0 ? "0" : times(t_.line * rows, row_),
                                          times(t_.columns * w_.columns.stride, column_)});
  std::map<ExprId, std::string> lines;
  for (const ExprId id : w_.staged) {
    lines[id] = writer_.unique("lines_at");
    writer_.line(fmt::format("const unsigned {} = {};", lines[id],
                             sum_of_terms({addresses_.at(id), times(4, in_parentheses(first))})));
  }
  return lines;
}

std::string NchwStencilEmitter::load_line(ExprId id, const std::string& first, const std::string& row) {
  const std::string name = writer_.unique("line"), type = c_type(pool_[id].type);
  writer_.line(fmt::format("{} {}[{}][4];", type, name, w_.elements_per_thread_line() / 4));
  const std::string k = open_each("k", w_.elements_per_thread_line() / 4);
  writer_.line(fmt::format("load_staged({}[{}], {});", name, k,
                           sum_of_terms({first, times(4 * t_.line, in_parentheses(row)), times(16, k)})));
  close_each();
  return name;
}

void NchwStencilEmitter::add_line(const std::map<ExprId, std::string>& taps, const std::map<ExprId, std::string>& lines,
                                  const std::string& u, const std::string& i) {
  const std::string v = open_each("v", w_.columns.taps), m = open_each("m", w_.members()),
                    e = open_each("e", t_.columns);
  const ExprEmitter::Mark mark = results_.mark();
  // All values that depend on axes have names, so any binding will do.
  for (std::uint32_t axis = 0; axis < w_.vectors.kernel.pool.bounds().axes.size(); ++axis) results_.bind(axis, "0");
  const std::string place = in_parentheses(
      sum_of_terms({std::to_string(w_.before), times(w_.columns.stride, e), times(w_.columns.dilation, v)}));
  for (std::size_t k = 0; k < w_.staged.size(); ++k)
    results_.define(w_.staged_of_vectors[k], fmt::format("{0}[{1} / 4][{1} % 4]", lines.at(w_.staged[k]), place));
  for (std::size_t k = 0; k < w_.weights.size(); ++k)
    results_.define(w_.weights_of_vectors[k], fmt::format("{}[{}][{}][{}]", taps.at(w_.weights[k]), u, v, m));
  std::vector<Accumulator> sums = accumulators_;
  for (Accumulator& sum : sums) sum.name += fmt::format("[{}][{}][{}]", m, i, e);
  results_.accumulate(sums);
  results_.rewind(mark);
  close_each(3);
}

void NchwStencilEmitter::finish_results() {
  const std::string plane = writer_.unique("here");
  writer_.line(fmt::format("const {} {} = {};", integer(), plane, sum_of_terms({plane0_, plane_})));
  std::string beyond = idle_threads() ? fmt::format("threadIdx.x >= {}", busy_threads()) : "";
  const auto or_beyond = [&](const std::string& what) { beyond += (beyond.empty() ? "" : " || ") + what; };
  if (!whole(plane_count_, t_.planes)) or_beyond(fmt::format("{} >= {}", plane, text(plane_count_)));
  const std::string vector = writer_.unique("vector");
  writer_.line(
      fmt::format("const {} {} = {};", integer(), vector,
                  sum_of_terms({column0_ == "0" ? "0" : fmt::format("{} / {}", column0_, t_.columns), column_})));
  if (!whole(width(), t_.block_columns())) or_beyond(fmt::format("{} >= {}", times(t_.columns, vector), text(width())));
  if (!beyond.empty()) writer_.line(fmt::format("if ({}) return;", beyond));
  std::vector<std::uint32_t> planes;  // the results' axes have other ids in `vectors`
  for (const std::uint32_t a : w_.planes) planes.push_back(w_.vectors.now.at(a));
  bind_flat(results_, planes, plane, "nopq");
  results_.bind(w_.vectors.vector, vector);
  const std::string i = open_each("i", t_.rows);
  if (w_.rows) {
    const std::string row = writer_.unique("row");
    writer_.line(fmt::format("const {} {} = {};", integer(), row, sum_of_terms({row0_, times(t_.rows, row_), i})));
    if (!whole(height(), t_.block_rows()))
      writer_.line(fmt::format("if ({} >= {}) {};", row, text(height()), t_.rows > 1 ? "break" : "return"));
    results_.bind(w_.vectors.now.at(w_.rows->result), row);
  }
  const std::string m = open_each("m", w_.members());
  if (w_.member) results_.bind(w_.vectors.now.at(*w_.member), m);
  finish_vector(fmt::format("[{}][{}]", m, i), vector);
  close_each(2);
}

void NchwStencilEmitter::finish_vector(const std::string& of, const std::string& vector) {
  std::map<ExprId, std::string> sums;
  for (const Accumulator& sum : accumulators_) sums[sum.reduction] = sum.name + of;
  if (whole(width(), t_.columns))
    return emit_epilogue_vector(results_, graph_, w_.vectors.lane, t_.columns, sums, {}, true);
  const std::string e = open_each("e", t_.columns);
  writer_.line(fmt::format("if ({} >= {}) break;", sum_of_terms({times(t_.columns, vector), e}), text(width())));
  const ExprEmitter::Mark mark = results_.mark();
  results_.bind(w_.vectors.lane, e);
  for (const auto& [reduction, sum] : sums) results_.define(reduction, fmt::format("{}[{}]", sum, e));
  emit_epilogue_scalar(results_);
  results_.rewind(mark);
  close_each();
}

KernelSource emit_nchw_stencil(const Kernel& kernel, const NchwStencil& stencil, const Graph& graph) {
  return NchwStencilEmitter(kernel, stencil, graph).emit();
}

}  // namespace fusec
