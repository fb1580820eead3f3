// Two contractions with interleaved columns in one matrix, such as gate and up in the experts of GPT-OSS:
//
//   h[i, j] = unit(sum_k x[i, k] * w[k, 2j], sum_k x[i, k] * w[k, 2j + 1])
//
// They become one contraction with twice the columns, and its operand is copied as stored:
//
//   p[i, c] = sum_k x[i, k] * w[k, c]        h[i, j] = unit(p[i, 2j], p[i, 2j + 1])
//
// The epilogue reads both columns of a pair from the staged accumulators, so nothing is reordered.
#pragma once

#include <optional>

#include "analysis/kernel/kernel.h"
#include "schedule/gemm/contraction.h"

namespace fusec {

struct InterleavedColumns {
  Kernel kernel;                         // the given kernel plus the single sum; existing expressions keep their ids
  Contraction contraction;               // of the single sum
  ExprId even = kNoExpr, odd = kNoExpr;  // the given sums
};

std::optional<InterleavedColumns> find_interleaved_columns(const Kernel& kernel, const Contraction& contraction);

}  // namespace fusec
