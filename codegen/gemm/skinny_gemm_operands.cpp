#include <fmt/format.h>

#include <utility>

#include "codegen/access/direct.h"
#include "codegen/access/vector_access.h"
#include "codegen/gemm/skinny_gemm_emitter.h"
#include "ir/type.h"

namespace fusec {

ExprId SkinnyGemmEmitter::root_of(const SkinnyOperandStream& s) const {
  if (s.operand->plain) return s.operand->operand;
  if (s.operand->magic_dequantize) return s.operand->magic_dequantize->quantized;
  const ExprNode& n = pool_[s.operand->operand];
  return n.op == ExprOp::kRound && n.dtype == form_.dtype ? n.args[0] : s.operand->operand;
}

std::string SkinnyGemmEmitter::enter_run(const SkinnyOperandStream& s, const std::string& c) {
  const std::string of_step = unit_;
  if (!s.left || form_.runs == 1) return of_step;
  const int of_parts = 4 / form_.runs;
  unit_ = writer_.unique("unit");
  writer_.line(fmt::format("const {} {} = {} * 4 + {} % {}{};", integer(), unit_, step_, c, form_.runs,
                           of_parts > 1 ? fmt::format(" * {} + part / {}", of_parts, form_.runs) : ""));
  return of_step;
}

void SkinnyGemmEmitter::bind(const SkinnyOperandStream& s, const SkinnyGemmLoop& loop, const std::string& c,
                             bool sure) {
  bind_flat(emitter_, loop.k, unit_, "kluvw");
  if (s.left) {
    if (form_.runs > 1) emitter_.bind(form_.run, fmt::format("(part % {})", form_.runs));
    if (form_.rows.empty()) return;
    const std::string row = writer_.unique("row");
    const std::string here = fmt::format("8 * {} + group", row_tile_text(c));
    writer_.line(fmt::format("const {} {} = {};", integer(), row,
                             sure ? here : fmt::format("min({}, {})", here, text(count(form_.rows) - 1))));
    bind_flat(emitter_, form_.rows, row, "mnopq");
    for (std::size_t i = 0; i < row_value_names_.size(); ++i)
      emitter_.define(form_.row_values[i], fmt::format("{}[{}]", row_value_names_[i], row));
    return;
  }
  const std::string column = writer_.unique("column");
  const std::string here = column0_ + (form_.k_major ? fmt::format(" + 8 * {} + group", c) : std::string(" + group"));
  const int of_block = form_.block.columns / columns_per_lane();
  writer_.line(fmt::format("const {} {} = {};", integer(), column,
                           proves_multiple_of(count(form_.columns), of_block, pool_.bounds())
                               ? here
                               : fmt::format("min({0}({1}), {0}{2})", writer_.wide() ? "(long long)" : "", here,
                                             text(count(form_.columns) - 1))));
  bind_flat(emitter_, form_.columns, column, "ijlst");
  if (!form_.k_major) emitter_.bind(loop.member, c);
}

std::string SkinnyGemmEmitter::open_which(int count, bool left) {
  const std::string c = writer_.unique(left ? "m" : "c");
  writer_.open_unrolled(c, count);
  return c;
}

void SkinnyGemmEmitter::declare_words(SkinnyOperandStream& s, const SkinnyGemmLoop& loop) {
  s.value = root_of(s);
  const ExprEmitter::Mark mark = emitter_.mark();
  const auto bind_all = [&](const std::vector<std::uint32_t>& axes) {
    for (const std::uint32_t a : axes)
      if (!emitter_.bound(a)) emitter_.bind(a, "0");
  };
  bind_all(loop.k);
  bind_all(form_.rows);
  bind_all(form_.columns);
  if (form_.runs > 1) bind_all({form_.run});
  if (!s.left && !form_.k_major) emitter_.bind(loop.member, "0");
  const VectorLoads loads(emitter_, graph_, vector_axis(s, loop), vector_width(s));
  for (const auto& [id, type] : loads.vector_loads({s.value})) {
    const std::string name = s.words[id] = writer_.unique(writer_.preferred_name(pool_[id].source) + "_w");
    writer_.line(fmt::format("{} {}[{}][{}]{};", type, name, form_.block.prefetch_steps, which(s),
                             absent_stay_zero(s) ? " = {}" : ""));
  }
  declare_quantized(s, loop);
  emitter_.rewind(mark);
  if (!loop.k_invariant_scales) declare_scales(s, loop);
}

void SkinnyGemmEmitter::declare_scales(SkinnyOperandStream& s, const SkinnyGemmLoop& loop) {
  if (!s.operand->scales_accumulators()) return;
  const std::string places =
      loop.k_invariant_scales
          ? fmt::format("[{}]", which(s))
          : fmt::format("[{}][{}]", form_.block.prefetch_steps / lanes_of_steps(), which(s) / lanes_of_columns(s));
  s.accumulator_scale = writer_.unique("of_block");
  writer_.line(fmt::format("float {}{};", s.accumulator_scale, places));
  if (s.operand->magic_dequantize && s.operand->magic_dequantize->needs_operand_sums()) {
    s.row_sum_scale = writer_.unique("of_rows");
    writer_.line(fmt::format("float {}{};", s.row_sum_scale, places));
  }
  if (!loop.k_invariant_scales) return;
  unit_ = "0";
  const std::string c = open_which(s);
  const ExprEmitter::Mark mark = emitter_.mark();
  bind(s, loop, c, true);
  assign_scales(s, fmt::format("[{}]", c));
  emitter_.rewind(mark);
  writer_.close();
}

void SkinnyGemmEmitter::load_shared_scales(const SkinnyOperandStream& s, const SkinnyGemmLoop& loop) {
  if (!s.operand->scales_accumulators()) return;
  const int of_steps = lanes_of_steps(), of_columns = lanes_of_columns(s);
  const std::string step = writer_.unique("step"), c = writer_.unique("c"), own = writer_.unique("c");
  unit_ = writer_.unique("unit");
  writer_.open_unrolled(step, form_.block.prefetch_steps / of_steps);
  writer_.line(fmt::format("const {} {} = ({} + ({} * {} + part % {}) * {}) * 4 + part;", integer(), unit_, iteration_,
                           step, of_steps, of_steps, form_.block.warps));
  writer_.open_unrolled(c, which(s) / of_columns);
  writer_.line(fmt::format("const int {} = {} * {} + part / {} % {};", own, c, of_columns, of_steps, of_columns));
  const std::string place = fmt::format("[{}][{}]", step, c);
  const std::string zeros = shares_zeros(s) ? s.zeros : "";
  for (const std::string& name : {s.accumulator_scale, s.row_sum_scale, zeros})
    if (!whole_ && !name.empty()) writer_.line(fmt::format("{}{} = 0;", name, place));
  if (!whole_) writer_.open(fmt::format("if ({} < {})", unit_, units_));
  const ExprEmitter::Mark mark = emitter_.mark();
  bind(s, loop, own, true);
  assign_scales(s, place);
  if (!zeros.empty())
    writer_.line(fmt::format("{}{} = {};", zeros, place, zero_text(*s.quantized, form_.dtype, emitter_)));
  emitter_.rewind(mark);
  if (!whole_) writer_.close();
  writer_.close();
  writer_.close();
}

std::string SkinnyGemmEmitter::shared_text(const SkinnyOperandStream& s, const std::string& names,
                                           const std::string& c) const {
  const int of_steps = lanes_of_steps(), of_columns = lanes_of_columns(s);
  return fmt::format("__shfl_sync(0xffffffffu, {0}[{1} / {2}][({3}) / {4}], {1} % {2} + ({3}) % {4} * {2}, 4)", names,
                     prefetch_steps_, of_steps, c, of_columns);
}

void SkinnyGemmEmitter::assign_scales(const SkinnyOperandStream& s, const std::string& place) {
  std::string scale = fmt::format("({})", fmt::join(emitter_.emit(s.operand->scales), ") * ("));
  const std::optional<MagicDequantize>& magic_dequantize = s.operand->magic_dequantize;
  if (!magic_dequantize) return writer_.line(fmt::format("{}{} = {};", s.accumulator_scale, place, scale));
  const std::string by = writer_.unique("scale");
  writer_.line(fmt::format("const float {} = {};", by, scale));
  const std::string unit = magic_dequantize->unit == 1 ? ""
                                                       : fmt::format(" * {}{}f", magic_dequantize->unit,
                                                                     magic_dequantize->unit < 1 ? "" : ".0");
  writer_.line(fmt::format("{}{} = {}{};", s.accumulator_scale, place, by, unit));
  if (s.row_sum_scale.empty()) return;
  const std::string times =
      magic_dequantize->zero == kNoExpr
          ? fmt::format("-{}.0f", magic_dequantize->offset)
          : fmt::format("-(float)({} + ({}))", magic_dequantize->offset, emitter_.emit(magic_dequantize->zero));
  writer_.line(fmt::format("{}{} = {} * {};", s.row_sum_scale, place, by, times));
}

void SkinnyGemmEmitter::declare_quantized(SkinnyOperandStream& s, const SkinnyGemmLoop& loop) {
  if (s.operand->plain || s.operand->magic_dequantize) return;
  s.quantized = find_dequantize(emitter_, s.value, form_.dtype, vector_axis(s, loop));
  if (!s.quantized) return;
  if (!s.words.contains(s.quantized->quantized) ||
      (s.quantized->per_element_scale && !s.words.contains(s.quantized->scale)))
    return s.quantized.reset();
  const auto declare = [&](ExprId number, std::string_view preferred_name) {
    if (number == kNoExpr) return std::string();
    const std::string name = writer_.unique(std::string(preferred_name));
    const bool shared = number == s.quantized->zero && shares_zeros(s);
    writer_.line(fmt::format("unsigned {}[{}][{}];", name, form_.block.prefetch_steps / (shared ? lanes_of_steps() : 1),
                             which(s) / (shared ? lanes_of_columns(s) : 1)));
    return name;
  };
  s.zeros = declare(s.quantized->zero, "zero");
  s.scales = s.quantized->per_element_scale ? s.words.at(s.quantized->scale) : declare(s.quantized->scale, "scale");
}

void SkinnyGemmEmitter::load(SkinnyOperandStream& s, const SkinnyGemmLoop& loop) {
  if (s.words.empty()) return;
  const std::string c = open_which(s), of_step = enter_run(s, c);
  std::string there = whole_ ? "" : fmt::format("{} < {}", unit_, units_);
  if (s.left && !row_there_.empty())
    there += fmt::format("{}{}[{}]", there.empty() ? "" : " && ", row_there_, row_tile_text(c));
  for (const auto& [id, name] : s.words)
    if (!there.empty() && !absent_stay_zero(s))
      writer_.line(fmt::format("{}[{}][{}] = {{}};", name, prefetch_steps_, c));
  if (!there.empty()) writer_.open(fmt::format("if ({})", there));
  const ExprEmitter::Mark mark = emitter_.mark();
  bind(s, loop, c, true);
  VectorLoads loads(emitter_, graph_, vector_axis(s, loop), vector_width(s));
  loads.declare({s.value}, "0", [&](ExprId id, const VectorLoads::Fill& fill) {
    const std::string to = fmt::format("{}[{}][{}]", s.words.at(id), prefetch_steps_, c);
    fill(to);
    return to;
  });
  emitter_.load_text = nullptr;
  const auto assign = [&](const std::string& name, const std::string& bits) {
    writer_.line(fmt::format("{}[{}][{}] = {};", name, prefetch_steps_, c, bits));
  };
  if (!s.zeros.empty() && !shares_zeros(s)) assign(s.zeros, zero_text(*s.quantized, form_.dtype, emitter_));
  if (!s.scales.empty() && !s.quantized->per_element_scale)
    assign(s.scales, scale_text(*s.quantized, form_.dtype, emitter_));
  emitter_.rewind(mark);
  if (!there.empty()) writer_.close();
  writer_.close();
  unit_ = of_step;
}

void SkinnyGemmEmitter::make_operands(SkinnyOperandStream& s, const SkinnyGemmLoop& loop) {
  const bool transposed = !s.left && !form_.k_major;
  if (s.operand->plain && !transposed) {
    s.operands = fmt::format("{}[{}]", s.words.at(s.operand->operand), prefetch_steps_);
    return gather_runs(s);
  }
  s.operands = writer_.unique(s.left ? "rows" : "columns");
  if (s.operand->plain) {
    writer_.use("transpose_8x8");
    writer_.line(fmt::format("Words<4> {}[8];", s.operands));
    writer_.line(
        fmt::format("transpose_8x8({}, {}[{}]);", s.operands, s.words.at(s.operand->operand), prefetch_steps_));
    return;
  }
  const bool of_column_tile = !s.left && !m16_column_tile_.empty();
  writer_.line(fmt::format("Words<{}> {}[{}];", operand_words(s.left ? form_.run_length() : form_.k_per_lane),
                           s.operands,
                           transposed       ? 8
                           : of_column_tile ? 2
                                            : which(s)));
  const std::string lines = transposed ? writer_.unique("lines") : "";
  if (transposed) writer_.line(fmt::format("Words<4> {}[8];", lines));
  const std::string into = transposed ? lines : s.operands;
  const std::string i = open_which(of_column_tile ? 2 : which(s), s.left);
  std::string c = i;
  if (of_column_tile) {
    c = writer_.unique("c");
    writer_.line(fmt::format("const int {} = 2 * {} + {};", c, m16_column_tile_, i));
  }
  const std::string of_step = enter_run(s, c);
  const std::string made = fmt::format("{}[{}]", into, i);
  const auto here = [&](const std::string& names) {
    return names.empty() ? "" : fmt::format("{}[{}][{}]", names, prefetch_steps_, c);
  };
  if (s.operand->magic_dequantize) {
    const MagicDequantize& quantized = *s.operand->magic_dequantize;
    writer_.line(fmt::format("{} = {};", made,
                             magic_dequantize_text(quantized, form_.dtype, operand_words(vector_width(s)),
                                                   here(s.words.at(quantized.quantized)), writer_)));
  } else if (s.quantized) {
    writer_.line(fmt::format(
        "{} = {};", made,
        dequantize_text(*s.quantized, form_.dtype, operand_words(vector_width(s)),
                        here(s.words.at(s.quantized->quantized)),
                        shares_zeros(s) ? shared_text(s, s.zeros, c) : here(s.zeros), here(s.scales), writer_)));
  } else {
    compute_bound(s, loop, c, made);
  }
  // Beyond K both operands must be zero, whatever was computed.
  if (!whole_) writer_.line(fmt::format("if ({} >= {}) {} = {{}};", unit_, units_, made));
  writer_.close();
  unit_ = of_step;
  if (!transposed) return gather_runs(s);
  writer_.use("transpose_8x8");
  writer_.line(fmt::format("transpose_8x8({}, {});", s.operands, lines));
}

void SkinnyGemmEmitter::gather_runs(SkinnyOperandStream& s) {
  if (!s.left || form_.runs == 1) return;
  const std::string runs = std::exchange(s.operands, writer_.unique("rows"));
  writer_.use("gather_runs");
  writer_.line(fmt::format("Words<{}> {}[{}];", operand_words(form_.k_per_lane), s.operands, row_tiles()));
  writer_.line(fmt::format("gather_runs<{}>({}, {}, (char*)dynamic_shared + warp * {}, warp_lane);", form_.runs,
                           s.operands, runs, shared_bytes_of_runs(form_)));
}

void SkinnyGemmEmitter::compute_bound(SkinnyOperandStream& s, const SkinnyGemmLoop& loop, const std::string& c,
                                      const std::string& into) {
  const ExprEmitter::Mark mark = emitter_.mark();
  if (!whole_) {
    const std::string inside = writer_.unique("unit");
    writer_.line(fmt::format("const {} {} = min({}, {});", integer(), inside, unit_, text(count(loop.k) - 1)));
    const std::string outside = std::exchange(unit_, inside);
    bind(s, loop, c, rows_fill());
    unit_ = outside;
  } else {
    bind(s, loop, c, rows_fill());
  }
  compute(s, loop, c, into);
  emitter_.rewind(mark);
}

void SkinnyGemmEmitter::compute(SkinnyOperandStream& s, const SkinnyGemmLoop& loop, const std::string& c,
                                const std::string& into) {
  const std::string e = writer_.unique("e"), values = writer_.unique("values");
  const int width = vector_width(s);
  VectorLoads loads(emitter_, graph_, vector_axis(s, loop), width);
  loads.declare({s.value}, e, [&](ExprId id, const VectorLoads::Fill&) {
    return fmt::format("{}[{}][{}]", s.words.at(id), prefetch_steps_, c);
  });
  emitter_.emit_independent({s.value});
  const bool whole = form_.dtype == DType::kInt8;
  writer_.line(whole ? fmt::format("Words<{}> {} = {{}};", operand_words(width), values)
                     : fmt::format("float {}[{}];", values, width));
  writer_.open_unrolled(e, width);
  const ExprEmitter::Mark mark = emitter_.mark();
  emitter_.bind(vector_axis(s, loop), e);
  define_dequantized(s, c, e);
  const std::string value = emitter_.emit(s.value);
  writer_.line(whole ? put_text(form_.dtype, values, e, value, writer_)
                     : fmt::format("{}[{}] = {};", values, e, value));
  emitter_.rewind(mark);
  writer_.close();
  emitter_.load_text = nullptr;
  const std::string pack = fmt::format("pack_{}", dtype_name());
  if (!whole) writer_.use(pack);
  writer_.line(whole ? fmt::format("{} = {};", into, values)
                     : fmt::format("{} = {}<{}>({});", into, pack, width / 2, values));
}

void SkinnyGemmEmitter::define_dequantized(const SkinnyOperandStream& s, const std::string& c, const std::string& e) {
  for (const ExprId id : reachable(pool_, std::span(&s.value, 1))) {
    const ExprNode& n = pool_[id];
    if (n.op != ExprOp::kConvert || n.type != ScalarType::kFloat32 || !s.words.contains(n.args[0])) continue;
    const DType dtype = pool_[n.args[0]].dtype;
    if (is_float(dtype) || dtype == DType::kBool || bits(dtype) > 8) continue;
    const bool has_sign = dtype == DType::kInt8 || dtype == DType::kInt4;
    writer_.use("quantized_to_float");
    emitter_.define(id, fmt::format("quantized_to_float<{}, {}>({}[{}][{}], {})", bits(dtype), has_sign,
                                    s.words.at(n.args[0]), prefetch_steps_, c, e));
  }
}

}  // namespace fusec
