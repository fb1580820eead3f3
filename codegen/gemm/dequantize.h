// Narrow numbers that become what is multiplied, of 16 bits or int8, eight at a time (codegen/prelude/dequantize.cu).
//
//   w[n, k]                             in int4       fp16_of_int4
//   (w[n, k] - z[n, k / 128]) * s[n, k / 128]         and two at a time what is the same for all of a lane's neighbours
//                                                     is taken from them, and they are multiplied by it
//
// Two at a time no more is rounded than one by one: codes less a zero point are integers that 16 bits hold, and what a
// product of 16-bit numbers is rounded to is the same from wherever it is exact.
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
  // The scale is another for each of the neighbours: a load of what is multiplied, or of powers of two.
  bool per_element_scale = false, per_element_exponent_scale = false;
  bool float_scale = false;  // its bits are those of float32: a power of two, or what has four bits of a mantissa
  std::string function;      // of the prelude, for eight
  std::string zero_point_function;  // the same with the zero point, where there is one
};

// `value`: without its last rounding to what is multiplied. `lane`: the axis of the neighbours.
std::optional<Dequantize> find_dequantize(const ExprEmitter& emitter, ExprId value, DType multiplied,
                                          std::uint32_t lane);

// The text of so many words, made of those that hold the codes. `zero` and `scale`: their bits, or words of scales that
// are apart.
std::string dequantize_text(const Dequantize& quantized, DType multiplied, int words, const std::string& from,
                            const std::string& zero, const std::string& scale, KernelWriter& writer);
// The text of the zero point's or scale's bits; emits what it is made of. "" for none.
std::string zero_text(const Dequantize& quantized, DType multiplied, ExprEmitter& emitter);
std::string scale_text(const Dequantize& quantized, DType multiplied, ExprEmitter& emitter);

// The text of so many words that have the codes' bits (schedule/gemm/magic_dequantize).
std::string magic_dequantize_text(const MagicDequantize& quantized, DType multiplied, int words,
                                  const std::string& from, KernelWriter& writer);

// How the prelude's functions call a dtype.
std::string short_name(DType dtype);

}  // namespace fusec
