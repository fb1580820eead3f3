// Sums of products of two factors, seen as matrix products over one space of output axes: what a block of threads can
// make of them tile by tile.
//
//   h[i, j] = silu(sum_k x[i, k] * g[j, k]) * sum_k x[i, k] * u[j, k]
//
//   rows i, columns j, one loop over k; left factors x; right factors g and u; two terms: x * g and x * u
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "analysis/kernel/kernel.h"

namespace fusec {

// One sum: which factors of its loop it multiplies.
struct ContractionTerm {
  ExprId reduction = kNoExpr;
  std::size_t left = 0, right = 0;
};

// Sums over the same depth: one loop, in which each distinct factor is loaded once.
struct ContractionLoop {
  std::vector<std::uint32_t> k;
  std::vector<ExprId> left, right;  // rows are of the left factors, columns of the right ones
  std::vector<ContractionTerm> terms;
};

// The right factors are of one matrix among several, and each row says of which: mixtures of experts.
//
//   y[i, n] = sum_k x[i, k] * w[expert(i), k, n]        axis e, w[e, k, n] in the factor, value expert(i)
struct ExpertIndex {
  std::uint32_t axis;
  ExprId value;  // the matrix of a row, at least 0 and less than the axis' extent
};

// All sums of a kernel: which output axes are whose.
struct Contraction {
  std::vector<ContractionLoop> loops;
  std::vector<std::uint32_t> batch, rows, columns;
  std::vector<std::uint32_t> shared_rest;  // output axes of extent 1
  // The dtype on whose grid all factors lie, so that tensor cores multiply them without loss.
  std::optional<DType> tensor_dtype;
  std::vector<ExprId> row_values;  // reductions that are the same for all columns, operands first
  std::optional<ExpertIndex> expert_index;
};

std::size_t term_count(const Contraction& product);

struct ContractionMatch {
  std::optional<Contraction> product;
  // Where axes had to be renamed for sums to share a loop: the kernel that `product` is about.
  std::optional<Kernel> kernel;
  std::string_view why_not;   // else
  ExprId blocking = kNoExpr;  // the reduction, of the kernel as it was given, that spoils it; if one does
};

// Where several reductions go over the same extents, each over axes of its own: the kernel in which they have the same
// axes, so that what is equal is one expression.
std::optional<Kernel> with_shared_reduction_axes(const Kernel& kernel);

// Of a kernel that holds a reduction. `with_vectors`: one without rows, a vector times a matrix, is a product, too.
ContractionMatch find_contraction(const Kernel& kernel, bool with_vectors = false);

}  // namespace fusec
