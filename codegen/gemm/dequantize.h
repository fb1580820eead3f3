// Dequantizes values to 16-bit floats or int8, eight at a time (codegen/prelude/dequantize.cu).
//
//   w[n, k]                             in int4       fp16_of_int4
//   (w[n, k] - z[n, k / 128]) * s[n, k / 128]         the zero point and the scale are applied to two values at a time
//
// This rounds no more than one value at a time would: a quantized value minus its zero point is an integer that 16 bits
// represent, and the scaled value is rounded once.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "codegen/expr/emit_expr.h"
#include "schedule/gemm/magic_dequantize.h"

namespace fusec {

struct Dequantize {
  ExprId quantized = kNoExpr;  // a load
  ExprId zero = kNoExpr, scale = kNoExpr;
  // The scale varies among the neighbours: a load of the multiplied dtype, or of powers of two.
  bool per_element_scale = false, per_element_exponent_scale = false;
  // The scale is passed as float32 bits: a power of two, or a float with at most four mantissa bits.
  bool float_scale = false;
  std::string function;             // prelude function for eight values
  std::string zero_point_function;  // prelude function that also subtracts the zero point; "" if there is none
};

// `value`: without the final rounding to `multiplied`. `lane`: the axis of the neighbours.
std::optional<Dequantize> find_dequantize(const ExprEmitter& emitter, ExprId value, DType multiplied,
                                          std::uint32_t lane);

// The text of `words` words, made from the words `from` with the quantized values. `zero` and `scale`: the text of
// their bits, or the words of per-element scales.
std::string dequantize_text(const Dequantize& quantized, DType multiplied, int words, const std::string& from,
                            const std::string& zero, const std::string& scale, KernelWriter& writer);
// The text of the bits of zero point or scale, "" if there is none. Emits the loads that it needs.
std::string zero_text(const Dequantize& quantized, DType multiplied, ExprEmitter& emitter);
std::string scale_text(const Dequantize& quantized, DType multiplied, ExprEmitter& emitter);

// The text of `words` words with the bits of the quantized values (schedule/gemm/magic_dequantize).
std::string magic_dequantize_text(const MagicDequantize& quantized, DType multiplied, int words,
                                  const std::string& from, KernelWriter& writer);

// The name of a dtype in prelude functions.
std::string short_name(DType dtype);

}  // namespace fusec
