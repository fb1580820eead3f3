#include "schedule/gemm/skinny_gemm_block.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/type.h"
#include "schedule/gemm/skinny_gemm_form.h"

namespace fusec {
namespace {

constexpr std::int64_t kMostSharedBytes = 96 << 10;
constexpr int kMaxColumns = 64;  // per block; each warp has accumulators for all of them
constexpr double kWorthWidening = 0.9;
constexpr double kEnoughBlocks = 0.75;  // per multiprocessor

// Chooses at most `warps` warps and as many prefetch steps as registers allow. Returns false if not even one step fits.
bool fill_block(SkinnyGemmForm& form, const SkinnyGemmSizes& sizes, int warps) {
  constexpr int kMostWords = 96;  // per lane, in flight
  SkinnyGemmBlock& block = form.block;
  double steps = 1e30;
  std::size_t left = 0;
  for (const double groups : sizes.k_groups) steps = std::min(steps, groups / 4);
  for (const SkinnyGemmLoop& loop : form.loops) left = std::max(left, loop.left.size());
  const int elements = form.k_major ? block.columns / 8 * form.k_per_lane : 64;
  const int of_step = elements * sizes.right_bits / 32 +
                      static_cast<int>(left) * form.n8_row_tiles() * form.k_per_lane * bits(form.dtype) / 32;
  const bool scaled = std::ranges::any_of(form.loops, [](const SkinnyGemmLoop& loop) { return loop.scaled(); });
  // Dequantization needs registers for several steps at a time, so fewer warps with more registers each.
  if (scaled) warps = std::min(warps, 8);
  const int registers = warps > 8 ? 120 : scaled ? 200 : 136;  // for loads, accumulators and computed values
  const int scales = scaled ? block.columns / 4 + 4 * form.n8_row_tiles() : 0;  // and row sums
  const int accumulators = form.accumulators * (scaled ? 2 : 1) * block.columns / 16 * form.n8_row_tiles() * 4 +
                           sizes.computed_right * form.k_per_lane + scales;
  // With more than two steps, products wait to be scaled.
  const auto waiting = [&] {
    return scaled && block.prefetch_steps > 2 ? (block.prefetch_steps - 2) * 4 * form.n8_row_tiles() : 0;
  };
  block.prefetch_steps = 4;
  while (block.prefetch_steps > 1 && (block.prefetch_steps * of_step > kMostWords ||
                                      block.prefetch_steps * of_step + accumulators + waiting() > registers))
    block.prefetch_steps /= 2;
  const bool fits = block.prefetch_steps * of_step + accumulators <= registers;
  block.warps = fits ? warps : std::min(warps, 8);  // eight warps may use more registers each
  while (block.warps > 1 && (block.warps / 2 >= steps || shared_bytes(form) > kMostSharedBytes)) block.warps /= 2;
  while (block.prefetch_steps > 1 && block.prefetch_steps / 2 * block.warps >= steps) block.prefetch_steps /= 2;
  return fits;
}

// A time in bytes of device memory: loading the matrix, plus what the blocks read through L2.
double bytes_of_time(const SkinnyGemmForm& form, const SkinnyGemmSizes& sizes, const Target& target) {
  constexpr double kRateOfL2 = 2;  // relative to device memory
  double rows = 0, column = 0;     // bytes of all rows; bytes of a column
  for (std::size_t i = 0; i < form.loops.size(); ++i) {
    const double k = sizes.k_groups[i] * form.k_per_lane / 8;
    rows += k * bits(form.dtype) * static_cast<double>(form.loops[i].left.size()) * sizes.rows;
    column += k * sizes.right_bits;
  }
  const double blocks = std::ceil(sizes.columns / form.block.columns);
  const double iterations = std::ceil(blocks / target.multiprocessors);
  return sizes.columns * column +
         iterations * (rows + form.block.columns * column) * target.multiprocessors / kRateOfL2;
}

// Widens the block while that saves much time and most multiprocessors keep a block.
void widen_block(SkinnyGemmForm& form, const SkinnyGemmSizes& sizes, const Target& target) {
  while (form.block.columns < kMaxColumns &&
         sizes.columns / (2 * form.block.columns) >= kEnoughBlocks * target.multiprocessors) {
    const SkinnyGemmBlock narrow = form.block;
    const double before = bytes_of_time(form, sizes, target);
    form.block.columns *= 2;
    if (fill_block(form, sizes, narrow.warps) && bytes_of_time(form, sizes, target) < kWorthWidening * before) continue;
    form.block = narrow;
    return;
  }
}

}  // namespace

void choose_block(SkinnyGemmForm& form, const SkinnyGemmSizes& sizes, const Target& target) {
  const auto blocks = [&] { return sizes.columns / form.block.columns; };
  form.block.columns = !form.k_major ? 64 : form.max_rows > 8 || form.accumulators == 1 ? 32 : 16;
  if (form.k_major && blocks() < kEnoughBlocks * target.multiprocessors) form.block.columns = 16;
  fill_block(form, sizes, blocks() < target.multiprocessors ? 16 : 8);
  if (form.k_major) widen_block(form, sizes, target);
  const SkinnyGemmBlock predicted = form.block;
  form.candidates = {predicted};
  const auto add = [&] {
    if (std::ranges::find(form.candidates, form.block) == form.candidates.end()) form.candidates.push_back(form.block);
  };
  if (form.block.prefetch_steps > 1) {
    form.block.prefetch_steps /= 2;
    add();
  }
  for (const int wide : {16, 32, 64})
    for (const int warps : {4, 8, 16}) {
      if (!form.k_major && wide != 64) continue;
      form.block.columns = wide;
      if (fill_block(form, sizes, warps) || wide < 64) add();
    }
  form.block = predicted;
}

std::string name_of(const SkinnyGemmBlock& block) {
  return fmt::format("{} columns by {} warps, {} steps ahead", block.columns, block.warps, block.prefetch_steps);
}

}  // namespace fusec
