// The rows of the op table, one function per family; OpTable::builtin() joins them in this order. A new built-in op is
// a new row in its family's file and nothing else.
#pragma once

#include <vector>

#include "ir/op.h"

namespace fusec::ops {

std::vector<OpDef> unary_ops();
std::vector<OpDef> binary_ops();
std::vector<OpDef> ternary_ops();
std::vector<OpDef> movement_ops();  // tuple and get_item too
std::vector<OpDef> creation_ops();
std::vector<OpDef> indexing_ops();
std::vector<OpDef> reduction_ops();
std::vector<OpDef> composite_ops();
std::vector<OpDef> matrix_ops();
std::vector<OpDef> pooling_ops();
std::vector<OpDef> gated_ops();
std::vector<OpDef> rotary_ops();
std::vector<OpDef> quantize_ops();   // quantize, dequantize
std::vector<OpDef> quantized_ops();  // linear layers on quantized operands, grouped_matmul
std::vector<OpDef> communication_ops();

}  // namespace fusec::ops
