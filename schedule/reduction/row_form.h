// A kernel with reductions, seen as rows: the output axes on which its reductions depend number the rows, the others
// are the columns of a row; every reduction goes over one axis if accesses allow it, and those of equal extent share
// their axis.
//
//   softmax  y[b, q, k], max and sum over k   ->  rows b, q; columns k
//   group norm y[n, c, h, w], mean over c // 8 ->  c is split in two: rows n, c1; columns c2, h, w
#pragma once

#include <algorithm>
#include <bit>
#include <functional>
#include <optional>
#include <vector>

#include "analysis/kernel/kernel.h"

namespace fusec {

struct RowForm {
  Kernel kernel;  // outputs' axes: rows, then columns
  std::vector<std::uint32_t> rows, columns;
  std::vector<ExprId> reductions;  // those that depend on rows alone
  // Reductions of segments of a row (schedule/reduction/row_segments) and how many columns a segment has; else none,
  // and 0.
  std::vector<ExprId> segments = {};
  std::int64_t segment = 0;
  int pieces = 1;  // of a row that a place of its columns stands for (schedule/reduction/row_folding)
  // Outputs of elements that wait for none of the reductions, where these have been parted from the kernel's
  // (schedule/reduction/extra_outputs).
  std::vector<KernelOutput> extra_outputs = {};
};

// The columns along which the output does not run: it is stored where they are 0.
std::vector<std::uint32_t> columns_without(const RowForm& form, const KernelOutput& output);

// Nothing where no reduction depends on output axes alone.
std::optional<RowForm> row_form(const Kernel& kernel, const Graph& graph);

// The rows' axes that lie one within the other are one.
RowForm with_rows_merged(const RowForm& form, const Graph& graph);

// What the roots need, without what the form's row reductions need inside, nor what `known` ones need.
std::vector<ExprId> outside_reductions(const RowForm& form, const std::vector<ExprId>& roots,
                                       const std::function<bool(ExprId)>& known = nullptr);

// Instructions that stand in the text for an element of what the roots need outside reductions (operation_work).
int code_of_element(const RowForm& form, const std::vector<ExprId>& roots,
                    const std::function<bool(ExprId)>& known = nullptr);

// The most of one loop over the row; what several need is kept.
int code_of_element(const RowForm& form);

// Unrolled, loops of a kernel have about so many instructions at most: NVRTC compiles them in less than 400 ms.
inline constexpr int kMaxUnrolledInstructions = 2400;

// Turns at once of a loop that is not unrolled as a whole: several, so that as many loads are on the way, unless a turn
// has so much code, or one of all loops has.
int unroll_factor(int code_of_turn, int code_of_all = 0);

// Has the output an element a row, rather than one for each column?
bool is_of_rows(const RowForm& form, const KernelOutput& output);

// Elements of so many bits that a thread takes at once: 16 bytes, and no more than eight of narrower ones.
constexpr int elements_of_vector(int bits) {
  return std::clamp(128 / bits, 1, 8);
}

// Elements of so many bits are taken one by one where rows begin anywhere and share others beside them: wherever a
// warp's 32 begin they ask for eight whole sectors, or for nine.
inline constexpr int kScalarLoadBits = 64;

// Do lanes of a warp take such a row by a vector each, or by what there is of one, where rows follow one another? A
// power of two of few vectors; or few, an odd number of them, as such rows begin within sectors: what a warp asks for
// has no gaps. Of five, narrow elements alone: for others a tile in shared memory takes fewer instructions.
constexpr bool takes_lane_each(std::int64_t length, int widest_bits) {
  constexpr std::int64_t kFew = 4, kFewNarrow = 5;
  const std::int64_t width = elements_of_vector(widest_bits), vectors = length / width;
  if (std::has_single_bit(static_cast<std::uint64_t>(length))) return vectors <= kFew;
  return length % width == 0 && vectors % 2 == 1 && vectors <= (width == elements_of_vector(8) ? kFewNarrow : kFew);
}

// Does a value of this type take 8 bytes?
bool is_wide(ScalarType type);

// Bytes of a result on the way: its value, and of argmax and argmin where it is.
int bytes_of_partial(const RowForm& form, ExprId reduction);

// Of all of them that have memory at once: each way to combine has its own, up to so many times.
int bytes_of_partials(const RowForm& form, int times_each);

// How many reductions of a row, one after the other, each reduction waits for; in the order of form.reductions.
std::vector<int> stages_of(const RowForm& form);

// Reductions that one loop over the row makes: over the same axes, and behind as many others.
struct ReductionLoop {
  int stage = 0;
  std::vector<std::uint32_t> axes;
  std::vector<ExprId> reductions = {};
  std::vector<ExprId> bodies(const ExprPool& pool) const;
};
// In the order in which they run.
std::vector<ReductionLoop> reduction_loops(const RowForm& form);

}  // namespace fusec
