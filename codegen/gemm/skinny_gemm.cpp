#include "codegen/gemm/skinny_gemm.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/access/direct.h"
#include "codegen/gemm/skinny_gemm_emitter.h"

namespace fusec {

KernelSource SkinnyGemmEmitter::emit() {
  writer_.use("dynamic_shared");
  for (const std::uint32_t a : form_.unit_axes) emitter_.bind(a, "0");
  place_block();
  row_values();
  for (std::size_t i = 0; i < form_.loops.size(); ++i) declare_accumulators(form_.loops[i]);
  for (std::size_t i = 0; i < form_.loops.size(); ++i) {
    if (form_.loops.size() > 1) writer_.open("");
    main_loop(form_.loops[i]);
    if (form_.loops.size() > 1) writer_.close();
  }
  if (form_.runs > 1) writer_.line("__syncthreads();");  // the accumulators overwrite the runs
  stage();
  finish();
  KernelSource source = writer_.finish(comment(), form_.block.warps * 32, 1);
  source.name = kernel_name(graph_, kernel_.nodes);
  source.grid[0] = simplify(tiles_across() * count(form_.batch), pool_.bounds());
  // No blocks without rows.
  if (range_of(count(form_.rows), pool_.bounds()).min < 1) source.grid[0] *= min(count(form_.rows), 1);
  source.dynamic_shared = shared_bytes(form_);
  source.schedule = {KernelKind::kSkinnyGemm, MatrixUnit::kMma};
  return source;
}

std::vector<std::string> SkinnyGemmEmitter::comment() const {
  std::vector<std::string> lines = kernel_comment(graph_, kernel_);
  lines.push_back(fmt::format(
      "A block makes all {}rows of {} columns on tensor cores; its {} warps share the depth, {} steps of {} each on "
      "the way.",
      count(form_.rows).is_constant() ? "" : "of at most 32 ", form_.block.columns, form_.block.warps,
      form_.block.prefetch_steps, 4 * form_.k_per_lane));
  return lines;
}

void SkinnyGemmEmitter::place_block() {
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
      fmt::format("const {} {} = {} * {};", integer(), column0_, tile, form_.block.columns / columns_per_lane()));
  writer_.line("const int warp = threadIdx.x / 32, warp_lane = threadIdx.x % 32;");
  writer_.line("const int group = warp_lane / 4, part = warp_lane % 4;");
}

void SkinnyGemmEmitter::row_values() {
  if (form_.row_values.empty()) return;
  for (const ExprId id : form_.row_values) {
    row_value_names_.push_back(writer_.unique("of_row"));
    writer_.line(fmt::format("__shared__ {} {}[{}];", c_type(pool_[id].type), row_value_names_.back(), form_.max_rows));
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
    writer_.line(fmt::format("if (warp_lane == 0) {}[{}] = {};", row_value_names_[i], row, values[i]));
  emitter_.rewind(mark);
  writer_.close();
  writer_.line("__syncthreads();");
}

bool SkinnyGemmEmitter::reduce_by_lanes(const std::vector<ExprId>& reductions) {
  std::vector<ExprEmitter::Accumulator> reductions_of_row;
  for (const ExprId r : reductions) {
    reductions_of_row.push_back(emitter_.accumulator(r));
    const ExprEmitter::Accumulator& a = reductions_of_row.back();
    writer_.line(fmt::format("{} {}{}{};", a.type, a.name, a.extreme ? "" : " = ", a.identity));
  }
  const ExprEmitter::Mark outside = emitter_.mark();
  const std::vector<std::uint32_t>& axes = pool_[reductions[0]].axes;
  const std::string row_k = writer_.unique("k");
  writer_.open(fmt::format("for ({0} {1} = warp_lane; {1} < {2}; {1} += 32)", integer(), row_k, text(count(axes))));
  bind_flat(emitter_, axes, row_k, "cdefghuvw");
  emitter_.accumulate(reductions_of_row);
  emitter_.rewind(outside);
  writer_.close();
  for (const ExprEmitter::Accumulator& a : reductions_of_row) {
    writer_.use("combine");
    writer_.use("warp_reduce");
    if (a.extreme) writer_.use("extreme_lanes");
    writer_.line(fmt::format("{0} = warp_reduce({0}, {1});", a.name, a.combine));
    emitter_.define(a.reduction, emitter_.result(a));
  }
  return true;
}

void SkinnyGemmEmitter::declare_accumulators(const SkinnyGemmLoop& loop) {
  for (const ContractionTerm& term : loop.terms) {
    std::string& sum = accumulators_[term.reduction] = writer_.unique("sum");
    writer_.line(fmt::format("{} {}[{}][{}][4] = {{}};", accumulator_type(), sum, m16_column_tiles(), row_tiles()));
  }
}

void SkinnyGemmEmitter::main_loop(const SkinnyGemmLoop& loop) {
  const IndexExpr units = count(loop.k);
  const int a_turn = form_.block.warps * form_.block.prefetch_steps;
  steps_ = text(ceil_div(units, 4));
  units_ = text(units);
  whole_ = proves_multiple_of(units, 4 * a_turn, pool_.bounds());
  iteration_ = writer_.unique("turn");
  prefetch_steps_ = writer_.unique("ahead");
  std::vector<SkinnyOperandStream> streams;
  for (const bool left : {true, false})
    for (const SkinnyGemmOperand& f : left ? loop.left : loop.right) streams.push_back({.operand = &f, .left = left});
  if (!rows_fill()) declare_row_there();
  if (loop.k_invariant_scales)
    for (SkinnyOperandStream& s : streams) declare_scales(s, loop);
  for (SkinnyOperandStream& s : streams)
    if (absent_stay_zero(s)) declare_words(s, loop);
  writer_.line("#pragma unroll 1");
  writer_.open(fmt::format("for (int {0} = warp; {0} < {1}; {0} += {2})", iteration_, steps_, a_turn));
  for (SkinnyOperandStream& s : streams)
    if (!absent_stay_zero(s)) declare_words(s, loop);
  open_step();
  for (SkinnyOperandStream& s : streams) load(s, loop);
  writer_.close();
  if (!loop.k_invariant_scales)
    for (const SkinnyOperandStream& s : streams) load_shared_scales(s, loop);
  open_step();
  const bool computes =
      std::ranges::any_of(streams, [](const SkinnyOperandStream& s) { return !s.left && !s.operand->plain; });
  const bool by_column_tile = form_.k_major && (computes || loop.scaled() || form_.dtype == DType::kInt8);
  for (SkinnyOperandStream& s : streams)
    if (s.left || !by_column_tile) make_operands(s, loop);
  const std::size_t left_count = loop.left.size();
  if (by_column_tile) {
    multiply_by_column_tile(streams, loop);
  } else {
    writer_.use(fmt::format("multiply_few_{}", dtype_name()));
    for (const ContractionTerm& term : loop.terms)
      writer_.line(fmt::format("multiply_few_{}({}, {}, {});", dtype_name(), accumulators_.at(term.reduction),
                               streams[left_count + term.right].operands, streams[term.left].operands));
  }
  writer_.close();
  writer_.close();
}

void SkinnyGemmEmitter::multiply_by_column_tile(std::vector<SkinnyOperandStream>& streams, const SkinnyGemmLoop& loop) {
  writer_.use(fmt::format("multiply_piece_{}", dtype_name()));
  accumulate_row_sums(streams, loop);
  m16_column_tile_ = writer_.unique("piece");
  writer_.open_unrolled(m16_column_tile_, m16_column_tiles());
  for (SkinnyOperandStream& s : streams)
    if (!s.left) make_operands(s, loop);
  const auto column = [&](const SkinnyOperandStream& s, int i) {
    return s.operand->plain ? fmt::format("{}[2 * {} + {}]", s.operands, m16_column_tile_, i)
                            : fmt::format("{}[{}]", s.operands, i);
  };
  for (const ContractionTerm& term : loop.terms) {
    const SkinnyOperandStream& s = streams[loop.left.size() + term.right];
    const std::string sum = fmt::format("{}[{}]", accumulators_.at(term.reduction), m16_column_tile_);
    const std::string part = loop.scaled() ? writer_.unique("products") : sum;
    if (loop.scaled())
      writer_.line(
          fmt::format("{} {}[{}][4] = {{}};", form_.dtype == DType::kInt8 ? "int" : "float", part, row_tiles()));
    writer_.line(fmt::format("multiply_piece_{}({}, {}, {}, {});", dtype_name(), part, column(s, 0), column(s, 1),
                             streams[term.left].operands));
    if (loop.scaled()) add_scaled(s, loop, sum, part, streams[term.left].row_sums);
  }
  writer_.close();
  m16_column_tile_.clear();
}

void SkinnyGemmEmitter::accumulate_row_sums(std::vector<SkinnyOperandStream>& streams, const SkinnyGemmLoop& loop) {
  for (const ContractionTerm& term : loop.terms) {
    SkinnyOperandStream& left = streams[term.left];
    if (streams[loop.left.size() + term.right].row_sum_scale.empty() || !left.row_sums.empty()) continue;
    left.row_sums = writer_.unique("row_sums");
    writer_.use("sum_few");
    writer_.use(fmt::format("mma_{}", dtype_name()));
    writer_.line(fmt::format("float {}[{}][2];", left.row_sums, row_tiles()));
    writer_.line(fmt::format("sum_few<mma_{}, {}>({}, {}, part);  // by ones", dtype_name(),
                             dtype_name() == "bf16" ? "0x3f803f80u" : "0x3c003c00u", left.row_sums, left.operands));
  }
}

void SkinnyGemmEmitter::add_scaled(const SkinnyOperandStream& s, const SkinnyGemmLoop& loop, const std::string& sum,
                                   const std::string& part, const std::string& row_sums) {
  const auto scale = [&](const std::string& names, int which) {
    const std::string c = fmt::format("2 * {} + {}", m16_column_tile_, which);
    return loop.k_invariant_scales ? fmt::format("{}[{}]", names, c) : shared_text(s, names, c);
  };
  const auto both = [&](const std::string& names) {
    return names.empty() ? "1.0f, 1.0f" : fmt::format("{}, {}", scale(names, 0), scale(names, 1));
  };
  writer_.use("add_scaled_piece");
  writer_.line(fmt::format("add_scaled_piece({}, {}, {});", sum, part, both(s.accumulator_scale)));
  if (s.row_sum_scale.empty()) return;
  writer_.use("add_rows_piece");
  writer_.line(fmt::format("add_rows_piece({}, {}, {});", sum, row_sums, both(s.row_sum_scale)));
}

void SkinnyGemmEmitter::declare_row_there() {
  row_there_ = writer_.unique("row_there");
  const std::string rows = text(count(form_.rows)), m = writer_.unique("m");
  writer_.line(fmt::format("bool {}[{}];", row_there_, row_tiles()));
  writer_.line("#pragma unroll");
  writer_.line(fmt::format("for (int {0} = 0; {0} < {1}; ++{0}) {2}[{0}] = 8 * {0} + group < {3};", m, row_tiles(),
                           row_there_, rows));
}

void SkinnyGemmEmitter::open_step() {
  writer_.open_unrolled(prefetch_steps_, form_.block.prefetch_steps);
  unit_ = writer_.unique("unit");
  step_ = fmt::format("({} + {} * {})", iteration_, prefetch_steps_, form_.block.warps);
  writer_.line(fmt::format("const {} {} = {} * 4 + part;", integer(), unit_, step_));
}

KernelSource emit_skinny_gemm(const Kernel& kernel, const Contraction& contraction, const SkinnyGemmForm& form,
                              const Graph& graph) {
  KernelWriter writer(graph, needs_wide_index(kernel, graph, point_count(kernel.pool, kernel.outputs.at(0).axes)));
  return SkinnyGemmEmitter(kernel, contraction, form, graph, writer).emit();
}

}  // namespace fusec
