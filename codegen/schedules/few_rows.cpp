#include "codegen/schedules/few_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/schedules/direct.h"
#include "codegen/schedules/few_rows_emitter.h"

namespace fusec {

KernelSource FewRowsEmitter::emit() {
  writer_.use("dynamic_shared");
  for (const std::uint32_t a : form_.ones) emitter_.bind(a, "0");
  place_block();
  row_values();
  for (std::size_t i = 0; i < form_.loops.size(); ++i) declare_sums(form_.loops[i]);
  for (std::size_t i = 0; i < form_.loops.size(); ++i) {
    if (form_.loops.size() > 1) writer_.open("");
    main_loop(form_.loops[i]);
    if (form_.loops.size() > 1) writer_.close();
  }
  if (form_.runs > 1) writer_.line("__syncthreads();");  // sums go where runs were
  stage();
  finish();
  KernelSource source = writer_.finish(comment(), form_.block.warps * 32, 1);
  source.name = kernel_name(graph_, kernel_.nodes);
  source.grid[0] = simplify(tiles_across() * count(form_.batch), pool_.bounds());
  if (range_of(count(form_.rows), pool_.bounds()).min < 1) source.grid[0] *= min(count(form_.rows), 1);  // nothing
  source.dynamic_shared = shared_bytes(form_);
  source.schedule = "few_rows_mma";
  return source;
}

std::vector<std::string> FewRowsEmitter::comment() const {
  std::vector<std::string> lines = kernel_comment(graph_, kernel_);
  lines.push_back(fmt::format(
      "A block makes all {}rows of {} columns on tensor cores; its {} warps share the depth, {} steps of {} each on "
      "the way.",
      count(form_.rows).is_constant() ? "" : "of at most 32 ", form_.block.columns, form_.block.warps,
      form_.block.ahead, 4 * form_.together));
  return lines;
}

void FewRowsEmitter::place_block() {
  column0_ = writer_.unique("column0");
  std::string tile = "(int)blockIdx.x";
  if (!form_.batch.empty()) {
    const std::string across = text(tiles_across());
    batch_ = writer_.unique("batch");
    writer_.line(fmt::format("const {} {} = (int)blockIdx.x / {};", integer(), batch_, across));
    bind_flat(emitter_, form_.batch, batch_, "bcdefgh");
    tile += " % " + across;
  }
  writer_.line(
      fmt::format("const {} {} = {} * {};", integer(), column0_, tile, form_.block.columns / columns_a_lane()));
  writer_.line("const int warp = threadIdx.x / 32, warp_lane = threadIdx.x % 32;");
  writer_.line("const int group = warp_lane / 4, part = warp_lane % 4;");
}

void FewRowsEmitter::row_values() {
  if (form_.row_values.empty()) return;
  for (const ExprId id : form_.row_values) {
    of_row_.push_back(writer_.unique("of_row"));
    writer_.line(fmt::format("__shared__ {} {}[{}];", c_type(pool_[id].type), of_row_.back(), form_.most_rows));
  }
  const std::string row = writer_.unique("row");
  writer_.open(
      fmt::format("for (int {0} = warp; {0} < {1}; {0} += {2})", row, text(count(form_.rows)), form_.block.warps));
  const ExprEmitter::Mark mark = emitter_.mark();
  if (!form_.rows.empty()) bind_flat(emitter_, form_.rows, row, "mnopq");
  emitter_.reduce_hook = [this](const std::vector<ExprId>& reductions) { return reduce_by_lanes(reductions); };
  const std::vector<std::string> values = emitter_.emit(form_.row_values);
  emitter_.reduce_hook = nullptr;
  for (std::size_t i = 0; i < values.size(); ++i)
    writer_.line(fmt::format("if (warp_lane == 0) {}[{}] = {};", of_row_[i], row, values[i]));
  emitter_.rewind(mark);
  writer_.close();
  writer_.line("__syncthreads();");
}

bool FewRowsEmitter::reduce_by_lanes(const std::vector<ExprId>& reductions) {
  std::vector<ExprEmitter::Accumulator> accumulators;
  for (const ExprId r : reductions) {
    accumulators.push_back(emitter_.accumulator(r));
    const ExprEmitter::Accumulator& a = accumulators.back();
    writer_.line(fmt::format("{} {}{}{};", a.type, a.name, a.extreme ? "" : " = ", a.identity));
  }
  const ExprEmitter::Mark outside = emitter_.mark();
  const std::vector<std::uint32_t>& axes = pool_[reductions[0]].axes;
  const std::string k = writer_.unique("k");
  writer_.open(fmt::format("for ({0} {1} = warp_lane; {1} < {2}; {1} += 32)", integer(), k, text(count(axes))));
  bind_flat(emitter_, axes, k, "cdefghuvw");
  emitter_.accumulate(accumulators);
  emitter_.rewind(outside);
  writer_.close();
  for (const ExprEmitter::Accumulator& a : accumulators) {
    writer_.use("combine");
    writer_.use("warp_reduce");
    if (a.extreme) writer_.use("extreme_lanes");
    writer_.line(fmt::format("{0} = warp_reduce({0}, {1});", a.name, a.combine));
    emitter_.define(a.reduction, emitter_.result(a));
  }
  return true;
}

void FewRowsEmitter::declare_sums(const FewRowsLoop& loop) {
  for (const ProductTerm& term : loop.terms) {
    std::string& sum = sums_[term.reduction] = writer_.unique("sum");
    writer_.line(fmt::format("{} {}[{}][{}][4] = {{}};", sum_type(), sum, pieces(), eights()));
  }
}

void FewRowsEmitter::main_loop(const FewRowsLoop& loop) {
  const IndexExpr units = count(loop.depth);
  const int a_turn = form_.block.warps * form_.block.ahead;
  steps_ = text(ceil_div(units, 4));
  units_ = text(units);
  whole_ = proves_multiple_of(units, 4 * a_turn, pool_.bounds());
  turn_ = writer_.unique("turn");
  ahead_ = writer_.unique("ahead");
  std::vector<FewRowsStream> streams;
  for (const bool left : {true, false})
    for (const FewRowsFactor& f : left ? loop.left : loop.right) streams.push_back({.factor = &f, .left = left});
  if (!rows_fill()) declare_row_there();
  if (loop.one_block)
    for (FewRowsStream& s : streams) declare_scales(s, loop);
  for (FewRowsStream& s : streams)
    if (absent_stay_zero(s)) declare_words(s, loop);
  writer_.line("#pragma unroll 1");
  writer_.open(fmt::format("for (int {0} = warp; {0} < {1}; {0} += {2})", turn_, steps_, a_turn));
  for (FewRowsStream& s : streams)
    if (!absent_stay_zero(s)) declare_words(s, loop);
  open_step();
  for (FewRowsStream& s : streams) load(s, loop);
  writer_.close();
  if (!loop.one_block)
    for (const FewRowsStream& s : streams) load_shared_scales(s, loop);
  open_step();
  const bool computes =
      std::ranges::any_of(streams, [](const FewRowsStream& s) { return !s.left && !s.factor->plain; });
  const bool in_pieces = form_.along_depth && (computes || loop.scaled() || form_.dtype == DType::kInt8);
  for (FewRowsStream& s : streams)
    if (s.left || !in_pieces) make_operands(s, loop);
  const std::size_t left_count = loop.left.size();
  if (in_pieces) {
    multiply_in_pieces(streams, loop);
  } else {
    writer_.use(fmt::format("multiply_few_{}", dtype_name()));
    for (const ProductTerm& term : loop.terms)
      writer_.line(fmt::format("multiply_few_{}({}, {}, {});", dtype_name(), sums_.at(term.reduction),
                               streams[left_count + term.right].operands, streams[term.left].operands));
  }
  writer_.close();
  writer_.close();
}

void FewRowsEmitter::multiply_in_pieces(std::vector<FewRowsStream>& streams, const FewRowsLoop& loop) {
  writer_.use(fmt::format("multiply_piece_{}", dtype_name()));
  sum_rows(streams, loop);
  piece_ = writer_.unique("piece");
  writer_.line("#pragma unroll");
  writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", piece_, pieces()));
  for (FewRowsStream& s : streams)
    if (!s.left) make_operands(s, loop);
  const auto column = [&](const FewRowsStream& s, int i) {
    return s.factor->plain ? fmt::format("{}[2 * {} + {}]", s.operands, piece_, i)
                           : fmt::format("{}[{}]", s.operands, i);
  };
  for (const ProductTerm& term : loop.terms) {
    const FewRowsStream& s = streams[loop.left.size() + term.right];
    const std::string sum = fmt::format("{}[{}]", sums_.at(term.reduction), piece_);
    const std::string part = loop.scaled() ? writer_.unique("products") : sum;
    if (loop.scaled())
      writer_.line(fmt::format("{} {}[{}][4] = {{}};", form_.dtype == DType::kInt8 ? "int" : "float", part, eights()));
    writer_.line(fmt::format("multiply_piece_{}({}, {}, {}, {});", dtype_name(), part, column(s, 0), column(s, 1),
                             streams[term.left].operands));
    if (loop.scaled()) add_scaled(s, loop, sum, part, streams[term.left].row_sums);
  }
  writer_.close();
  piece_.clear();
}

void FewRowsEmitter::sum_rows(std::vector<FewRowsStream>& streams, const FewRowsLoop& loop) {
  for (const ProductTerm& term : loop.terms) {
    FewRowsStream& left = streams[term.left];
    if (streams[loop.left.size() + term.right].rows_scale.empty() || !left.row_sums.empty()) continue;
    left.row_sums = writer_.unique("row_sums");
    writer_.use("sum_few");
    writer_.use(fmt::format("mma_{}", dtype_name()));
    writer_.line(fmt::format("float {}[{}][2];", left.row_sums, eights()));
    writer_.line(fmt::format("sum_few<mma_{}, {}>({}, {}, part);  // by ones", dtype_name(),
                             dtype_name() == "bf16" ? "0x3f803f80u" : "0x3c003c00u", left.row_sums, left.operands));
  }
}

void FewRowsEmitter::add_scaled(const FewRowsStream& s, const FewRowsLoop& loop, const std::string& sum,
                                const std::string& part, const std::string& row_sums) {
  const auto scale = [&](const std::string& names, int which) {
    const std::string c = fmt::format("2 * {} + {}", piece_, which);
    return loop.one_block ? fmt::format("{}[{}]", names, c) : shared_text(s, names, c);
  };
  const auto both = [&](const std::string& names) {
    return names.empty() ? "1.0f, 1.0f" : fmt::format("{}, {}", scale(names, 0), scale(names, 1));
  };
  writer_.use("add_scaled_piece");
  writer_.line(fmt::format("add_scaled_piece({}, {}, {});", sum, part, both(s.sums_scale)));
  if (s.rows_scale.empty()) return;
  writer_.use("add_rows_piece");
  writer_.line(fmt::format("add_rows_piece({}, {}, {});", sum, row_sums, both(s.rows_scale)));
}

void FewRowsEmitter::declare_row_there() {
  row_there_ = writer_.unique("row_there");
  writer_.line(fmt::format("bool {}[{}];", row_there_, eights()));
  writer_.line("#pragma unroll");
  writer_.line(fmt::format("for (int m = 0; m < {0}; ++m) {1}[m] = 8 * m + group < {2};", eights(), row_there_,
                           text(count(form_.rows))));
}

void FewRowsEmitter::open_step() {
  writer_.line("#pragma unroll");
  writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", ahead_, form_.block.ahead));
  unit_ = writer_.unique("unit");
  step_ = fmt::format("({} + {} * {})", turn_, ahead_, form_.block.warps);
  writer_.line(fmt::format("const {} {} = {} * 4 + part;", integer(), unit_, step_));
}

KernelSource few_rows(const Kernel& kernel, const Product& product, const FewRowsForm& form, const Graph& graph) {
  KernelWriter writer(graph, needs_wide_index(kernel, graph, point_count(kernel.pool, kernel.outputs.at(0).axes)));
  return FewRowsEmitter(kernel, product, form, graph, writer).emit();
}

}  // namespace fusec
