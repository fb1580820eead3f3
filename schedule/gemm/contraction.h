// Recognizes contractions in a kernel: sums of products of two operands, as GEMMs over one set of output axes.
//
//   h[i, j] = silu(sum_k x[i, k] * g[j, k]) * sum_k x[i, k] * u[j, k]
//
//   rows i; columns j; one loop over k; left operand x; right operands g and u; two terms: x * g and x * u
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "analysis/kernel/kernel.h"

namespace fusec {

// One accumulator: the operands of its loop that it multiplies.
struct ContractionTerm {
  ExprId reduction = kNoExpr;
  std::size_t left = 0, right = 0;
};

// Sums over the same K: one loop that loads each distinct operand once.
struct ContractionLoop {
  std::vector<std::uint32_t> k;
  std::vector<ExprId> left, right;  // left operands have the rows, right ones the columns
  std::vector<ContractionTerm> terms;
};

// Mixture of experts: the right operands are one matrix of several, chosen per row.
//
//   y[i, n] = sum_k x[i, k] * w[expert(i), k, n]        axis e; the operand is w[e, k, n]; the value is expert(i)
struct ExpertIndex {
  std::uint32_t axis;
  ExprId value;  // the matrix of a row, in [0, extent of the axis)
};

// All contractions of a kernel, with the roles of the output axes.
struct Contraction {
  std::vector<ContractionLoop> loops;
  std::vector<std::uint32_t> batch, rows, columns;
  std::vector<std::uint32_t> shared_rest;  // output axes of extent 1
  // A dtype that represents all operands exactly, so that tensor cores multiply them without loss.
  std::optional<DType> tensor_dtype;
  std::vector<ExprId> row_values;  // reductions that are the same for all columns, operands before users
  std::optional<ExpertIndex> expert_index;
};

std::size_t term_count(const Contraction& contraction);

struct ContractionMatch {
  std::optional<Contraction> contraction;
  // Set if axes had to be renamed so that sums share a loop: `contraction` refers to this kernel.
  std::optional<Kernel> kernel;
  std::string_view why_not;   // set if there is no product
  ExprId blocking = kNoExpr;  // the reduction of the given kernel that prevents a contraction, if one does
};

// Gives reductions over equal extents the same axes, so that equal subexpressions become one. Returns nullopt when
// nothing changes.
std::optional<Kernel> with_shared_reduction_axes(const Kernel& kernel);

// The kernel must hold a reduction. `with_vectors`: also accepts a vector times a matrix, which has no rows.
ContractionMatch find_contraction(const Kernel& kernel, bool with_vectors = false);

}  // namespace fusec
