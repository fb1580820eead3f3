// A product of a few rows with a large matrix, as in decoding: what counts is how fast the matrix comes from memory.
//
//   y[i, n] = sum_k x[i, k] * w[n, k]        at most 32 rows i; w also as w[k, n], or computed of what is in memory
//
// Each element of w is loaded once, by vectors, straight into the registers of the lane that multiplies it; warps share
// the depth among themselves. For that the last axis of the depth comes in groups of `together` neighbours, a lane's;
// where w's neighbours lie across the depth, the last axis of the columns comes in eights instead.
//
// A lane's neighbours that are 16 bytes of w and more of x are, of x, runs of 16 bytes apart, so that the four lanes of
// a row ask for whole sectors together; they hand them to one another before they multiply.
//
// Integers are multiplied as int8. Where w is what can be multiplied times scales of blocks of the depth, each step's
// sums are multiplied by them: a step lies within a block. Codes are then multiplied as bits, for up to 16 rows
// (analysis/shifted_codes): at the rate at which int4 comes from memory, making numbers of it would be most of the
// work.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/products.h"
#include "analysis/shifted_codes.h"
#include "analysis/target.h"
#include "ir/graph.h"

namespace fusec {

struct FewRowsFactor {
  ExprId factor = kNoExpr;                             // of the split kernel
  bool plain = false;                                  // words of memory are operands as they are
  std::vector<ExprId> scales = {};                     // of a block of the depth: what sums are multiplied by
  std::optional<ShiftedCodes> shifted = std::nullopt;  // what is multiplied in place of `factor`
  bool zero_of_block = false;                          // the zero point in `factor` is one of a block with the scales

  bool scales_sums() const { return shifted || !scales.empty(); }
};

struct FewRowsLoop {
  std::vector<std::uint32_t> depth;  // of groups
  std::uint32_t member = 0;          // of a group
  std::vector<FewRowsFactor> left, right;
  std::vector<ProductTerm> terms;  // reductions of the kernel as it was
  bool one_block = false;          // scales are the same all along the depth
  bool scaled() const {
    return std::any_of(right.begin(), right.end(), [](const FewRowsFactor& f) { return f.scales_sums(); });
  }
};

struct FewRowsBlock {
  int columns = 16;
  int warps = 8;
  int ahead = 4;  // steps whose loads are on the way at a time

  friend bool operator==(const FewRowsBlock&, const FewRowsBlock&) = default;
};

struct FewRowsForm {
  Kernel kernel;                                    // with axes split
  std::vector<std::uint32_t> batch, rows, columns;  // its axes; columns: of eights, where w lies across the depth
  std::vector<std::uint32_t> ones;
  std::vector<ExprId> row_values;  // of `kernel`, operands first
  std::vector<ExprId> row_values_before;
  std::uint32_t column_member = 0;
  std::vector<FewRowsLoop> loops;
  DType dtype = DType::kFloat16;  // of what is multiplied: 16-bit floats, or int8
  bool whole_sums = false;        // int32
  bool along_depth = true;
  int together = 8;
  int runs = 1;             // that a lane's neighbours are in a row's loads: of `run_length`
  std::uint32_t run = 0;    // which of the `together` neighbours' runs: an axis that rows' factors have where runs > 1
  std::uint32_t place = 0;  // in a run: likewise
  int most_rows = 1;
  FewRowsBlock block;              // the first of:
  std::vector<FewRowsBlock> ways;  // the best first, as predicted
  int sums = 1;

  int eights_of_rows() const { return (most_rows + 7) / 8; }
  int run_length() const { return together / runs; }
};

// The kernel must hold the product, whose rows may be none: a vector times a matrix.
std::optional<FewRowsForm> find_few_rows(const Graph& graph, const Kernel& kernel, const Product& product,
                                         const Target& target);

// Sums of all warps on their way to one another, or what lanes hand to one another before.
std::int64_t shared_bytes(const FewRowsForm& form);

// Runs of rows of a warp, on their way from lane to lane.
std::int64_t shared_bytes_of_runs(const FewRowsForm& form);

// "32 columns by 8 warps, 4 steps ahead".
std::string name_of(const FewRowsBlock& block);

}  // namespace fusec
