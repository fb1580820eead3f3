// The tiles of a block that fills them by expressions (codegen/gemm/contraction): 64 x 64 of a product, or some whole
// rows of one, so many columns at a time (schedule/gemm/row_gemm).
#pragma once

#include <algorithm>

#include "schedule/gemm/contraction.h"

namespace fusec {

struct ContractionTiles {
  bool tensor_cores = false;
  bool wide = false;            // accumulators of 64 bits
  int threads = 256;            // without tensor cores, 16 by 16 threads have every 16th row and column
  int rows = 64, columns = 64;  // multiplied at a time
  int warp_rows = 32;           // on tensor cores; a warp has 32 columns

  int k() const { return tensor_cores ? 32 : 16; }
  int warps_across() const { return columns / 32; }
  int warps() const { return rows / warp_rows * warps_across(); }  // that multiply, on tensor cores
  // Elements per line of an operand's tile with `size` rows or columns. On tensor cores a line runs along K, or across
  // K (`across`) if vector loads do; ldmatrix transposes those. Without tensor cores all lines run across K. Padding
  // avoids bank conflicts.
  int stride(int size, bool across) const {
    if (tensor_cores) return (across ? size : k()) + 8;
    return size + (wide ? 1 : 2);
  }
  int elements(int size) const {
    return std::max(k() * stride(size, true), tensor_cores ? size * stride(size, false) : 0);
  }
};

inline ContractionTiles tiles_of(const ExprPool& pool, const Contraction& contraction) {
  const ScalarType type = pool[contraction.loops[0].terms[0].reduction].type;
  const bool tensor_cores = contraction.tensor_dtype.has_value();
  return {.tensor_cores = tensor_cores,
          .wide = type == ScalarType::kFloat64 || type == ScalarType::kInt64,
          .threads = tensor_cores ? 128 : 256};
}

}  // namespace fusec
