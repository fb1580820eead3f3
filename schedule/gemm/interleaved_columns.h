// Two sums whose columns take turns in one matrix, as experts of GPT-OSS have gate and up,
//
//   h[i, j] = unit(sum_k x[i, k] * w[k, 2j], sum_k x[i, k] * w[k, 2j + 1])
//
// are one sum of twice as many columns, whose factor is copied as it lies:
//
//   p[i, c] = sum_k x[i, k] * w[k, c]        h[i, j] = unit(p[i, 2j], p[i, 2j + 1])
//
// What stands behind the product reads both of a pair where the sums are staged: nothing is put in another order.
#pragma once

#include <optional>

#include "analysis/kernel/kernel.h"
#include "schedule/gemm/contraction.h"

namespace fusec {

struct InterleavedColumns {
  Kernel kernel;        // the given one, with the one sum beside its own: all of its expressions are what they were
  Contraction product;  // of the one sum
  ExprId even = kNoExpr, odd = kNoExpr;  // the given sums
};

std::optional<InterleavedColumns> find_interleaved_columns(const Kernel& kernel, const Contraction& product);

}  // namespace fusec
