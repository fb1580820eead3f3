#include "codegen/gemm/dequantize.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/access/vector_access.h"
#include "ir/type.h"
#include "schedule/gemm/operand_scales.h"

namespace fusec {
namespace {

// The prelude function that converts eight values; nullopt if there is none.
std::optional<std::string> dequantize_function(DType from, DType to) {
  const auto is = [](DType d, std::initializer_list<DType> list) { return std::ranges::find(list, d) != list.end(); };
  using enum DType;
  const bool known = to == kFloat16
                         ? is(from, {kFloat8E4M3FN, kFloat8E5M2, kFloat4E2M1FN, kInt8, kUInt8, kInt4, kUInt4})
                     : to == kBFloat16 ? is(from, {kFloat8E4M3FN, kFloat4E2M1FN, kInt8, kUInt8, kInt4, kUInt4})
                                       : to == kInt8 && is(from, {kInt4, kUInt4});
  if (!known) return std::nullopt;
  return fmt::format("{}_of_{}", short_name(to), short_name(from));
}

// e2m1 values are converted to 8 * (value + 22), and this offset is subtracted with the scale. bfloat16 represents 22
// times any of these scales; float16 does not.
bool has_16_bit_scale(DType scale, DType multiplied) {
  if (scale == DType::kFloat8E8M0FNU) return true;
  return multiplied == DType::kBFloat16 && (scale == DType::kFloat8E4M3FN || scale == DType::kFloat8E5M2);
}

// The prelude function that also subtracts the zero point. The offset of the conversion is added to the zero point.
std::optional<std::string> dequantize_function_with_zero_point(const Dequantize& quantized, const ExprPool& pool,
                                                               DType to) {
  const ExprNode& zero = pool[without_conversion(pool, quantized.zero)];
  const DType from = pool[quantized.quantized].dtype;
  const bool known = zero.op == ExprOp::kLoad && is_integer(zero.dtype) && is_integer(from) &&
                     bits(zero.dtype) <= (to == DType::kBFloat16 ? 4 : 8) &&
                     (to == DType::kFloat16 || (to == DType::kBFloat16 && bits(from) == 4));
  if (!known) return std::nullopt;
  return fmt::format("{}_of_{}_less", short_name(to), short_name(from));
}

std::string bits_text(ExprId number, DType multiplied, ExprEmitter& emitter) {
  if (number == kNoExpr) return "";
  emitter.writer().use(multiplied);
  const std::string value = emitter.emit(number);
  const bool whole = !is_float(emitter.kernel().pool[number].type);
  return narrow(multiplied, whole ? fmt::format("(float)({})", value) : value);
}

}  // namespace

std::string short_name(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return "fp16";
    case DType::kBFloat16:
      return "bf16";
    case DType::kFloat8E4M3FN:
      return "e4m3";
    case DType::kFloat8E5M2:
      return "e5m2";
    case DType::kFloat4E2M1FN:
      return "e2m1";
    default:
      return std::string(name(dtype));
  }
}

std::optional<Dequantize> find_dequantize(const ExprEmitter& emitter, ExprId value, DType multiplied,
                                          std::uint32_t lane) {
  const ExprPool& pool = emitter.kernel().pool;
  const auto same_for_all = [&](ExprId id) {
    return !emitter.depends_on(id, lane) && is_exact_in(pool, id, multiplied);
  };
  Dequantize made;
  if (const ExprNode& n = pool[value]; n.op == ExprOp::kMul && is_float(n.type)) {
    const auto is_scale = [&](ExprId id) {
      const bool plain = pool[id].op == ExprOp::kLoad && pool[id].args[0] == kNoExpr && pool[id].dtype == multiplied;
      const bool power = pool[id].op == ExprOp::kLoad && pool[id].dtype == DType::kFloat8E8M0FNU;
      return same_for_all(id) || plain || (power && (!emitter.depends_on(id, lane) || multiplied == DType::kBFloat16));
    };
    const bool first = is_scale(n.args[0]);
    made.scale = n.args[first ? 0 : 1], value = n.args[first ? 1 : 0];
    if (!is_scale(made.scale)) return std::nullopt;
    made.per_element_scale = emitter.depends_on(made.scale, lane);
    const ExprNode& scale = pool[made.scale];
    made.per_element_exponent_scale = made.per_element_scale && scale.dtype == DType::kFloat8E8M0FNU;
    if (made.per_element_exponent_scale && scale.args[0] != kNoExpr) return std::nullopt;
    made.float_scale =
        !made.per_element_scale && scale.op == ExprOp::kLoad && has_16_bit_scale(scale.dtype, multiplied);
  }
  value = without_conversion(pool, value);
  if (const ExprNode& n = pool[value];
      n.op == ExprOp::kSub && bits(multiplied) == 16 && is_exact_in(pool, value, multiplied)) {  // of integers
    made.zero = n.args[1], value = without_conversion(pool, n.args[0]);
    if (!same_for_all(made.zero)) return std::nullopt;
  }
  if (pool[value].op != ExprOp::kLoad || pool[value].args[0] != kNoExpr) return std::nullopt;
  const auto function = dequantize_function(pool[value].dtype, multiplied);
  if (!function) return std::nullopt;
  made.quantized = value;
  made.function = *function;
  if (made.zero != kNoExpr)
    made.zero_point_function = dequantize_function_with_zero_point(made, pool, multiplied).value_or("");
  return made;
}

std::string zero_text(const Dequantize& quantized, DType multiplied, ExprEmitter& emitter) {
  return bits_text(quantized.zero, multiplied, emitter);
}

std::string scale_text(const Dequantize& quantized, DType multiplied, ExprEmitter& emitter) {
  if (quantized.float_scale) return fmt::format("__float_as_uint({})", emitter.emit(quantized.scale));
  return bits_text(quantized.scale, multiplied, emitter);
}

std::string dequantize_text(const Dequantize& quantized, DType multiplied, int words, const std::string& from,
                            const std::string& zero, const std::string& scale, KernelWriter& writer) {
  writer.use("widened");
  const std::string to = short_name(multiplied);
  const bool half = multiplied == DType::kFloat16;
  // Conversion and scale in one function.
  if (quantized.function == "bf16_of_e2m1" && quantized.float_scale && zero.empty()) {
    writer.use("shifted_" + quantized.function);
    writer.use("scaled_numbers_bf16");
    return fmt::format("scaled_numbers_bf16(widened<shifted_{}, {}>({}), {})", quantized.function, words, from, scale);
  }
  const bool less = !quantized.zero_point_function.empty();
  writer.use(less ? quantized.zero_point_function : quantized.function);
  if (less) writer.use("widened_less");
  std::string text = less
                         ? fmt::format("widened_less<{}, {}>({}, {})", quantized.zero_point_function, words, from, zero)
                         : fmt::format("widened<{}, {}>({})", quantized.function, words, from);
  const auto with = [&](const std::string& part, const std::string& number) {
    if (number.empty()) return;
    writer.use(part);
    text = fmt::format("{}({}, {})", part, text, number);
  };
  if (!less) with("less_" + to, zero);
  if (quantized.per_element_exponent_scale) {
    writer.use("bf16_of_e8m0");
    with("scaled_" + to, fmt::format("bf16_of_e8m0<{}>({})", words, scale));
  } else if (quantized.float_scale)
    with(half ? "scaled_powers_fp16" : "scaled_bf16", half ? scale : scale + " >> 16");
  else
    with("scaled_" + to, scale);
  return text;
}

std::string magic_dequantize_text(const MagicDequantize& quantized, DType multiplied, int words,
                                  const std::string& from, KernelWriter& writer) {
  const bool numbers = quantized.unit == 1 && quantized.offset == 0;
  const std::string function =
      fmt::format("{}{}_of_{}", numbers ? "" : "shifted_", short_name(multiplied), short_name(quantized.dtype));
  writer.use("widened");
  writer.use(function);
  return fmt::format("widened<{}, {}>({})", function, words, from);
}

}  // namespace fusec
