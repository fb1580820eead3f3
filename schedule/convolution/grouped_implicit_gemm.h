// Plans grouped convolutions with few channels per group, batched GEMMs of that kind, and convolutions with few output
// channels (an image's three at the end of a decoder). A block copies the input positions that its windows cover, with
// the channels of its groups, to shared memory. Each warp multiplies one group on tensor cores and reads its operand
// from there for every tap.
//
//   y[n, i, j, g, m] = sum over c, u, v of x[n, i + u - 1, j + v - 1, g, c] * w[g, m, c, u, v]
//
//   axes n, i with u, j with v: a block has 1 x 8 x 16 results; 10 x 18 positions with 64 channels each are copied
//   K: slots of 16 bytes of one tap's channels, or 8 or 4 bytes if groups have no more; unused slots are zeros, and
//   another group's channels are never multiplied (an infinity stays in its group)
//
// NHWC channels are copied 16 bytes at a time. For an NCHW image (`image_is_nchw`), neighbouring threads load
// neighbouring positions, one channel after the other, and assemble 16 bytes per position. For NCHW results
// (`results_are_nchw`), threads store neighbours along the last axis.
//
// Positions are permuted in shared memory: results whose windows share a tap across the stride are neighbours, so a
// warp's 16 rows are read without bank conflicts for any stride.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include "ir/graph.h"
#include "schedule/gemm/contraction.h"
#include "schedule/target/target.h"

namespace fusec {

// A spatial axis of the results and the tap that moves along it. The input position is stride * result + dilation *
// tap. One of them may be missing: the batch axis has no tap, and a single result has no axis.
struct ImplicitGemmAxis {
  std::optional<std::uint32_t> result, tap;
  std::int64_t stride = 1, dilation = 1, taps = 1;
  int results = 1;  // per block

  // Number of phases: taps repeat their alignment to the stride with this period. Neighbouring results have
  // neighbouring positions within a phase.
  std::int64_t phases() const { return std::min(stride / std::gcd(stride, dilation), taps); }
  // Offset of the tap within its phase, in results.
  std::int64_t offset_in_phase(std::int64_t of_tap) const { return dilation * (of_tap / phases() * phases()) / stride; }
  std::int64_t reach() const { return offset_in_phase(taps - 1); }
  std::int64_t positions_per_phase() const { return results + reach(); }
  std::int64_t positions() const { return phases() * positions_per_phase(); }
  std::int64_t place(std::int64_t of_tap) const {
    return of_tap % phases() * positions_per_phase() + offset_in_phase(of_tap);
  }
};

struct GroupedImplicitGemm {
  Kernel kernel;  // channels of the results are split into group and member
  Contraction contraction;
  DType dtype = DType::kFloat16;              // of the MMA operands; float32 as tf32, if allowed
  ExprId image = kNoExpr, weights = kNoExpr;  // loads
  std::vector<ExprId> guards;                 // padding conditions of the image
  std::uint32_t group = 0, member = 0;   // output channel axes; with one group, `group` is an axis that no index uses
  std::optional<std::uint32_t> channel;  // input channel within a group
  bool image_is_nchw = false, results_are_nchw = false;
  IndexExpr channel_stride = 1;  // of the image, in elements
  std::int64_t groups = 1, members = 1, channels = 1;
  bool weights_in_words = false;       // four bytes of channels are contiguous and aligned
  std::vector<ImplicitGemmAxis> axes;  // in the order of the results

  int groups_per_block = 1;
  int m16_tiles = 1;                  // m16 tiles per warp
  std::int64_t m16_tile_stride = 0;   // positions from one m16 tile to the next
  std::int64_t half_tile_stride = 0;  // positions from a tile's first eight results to its others

  // The epilogue kernel: results in vectors of eight channels, as the last axes; for NCHW results, vectors along the
  // last spatial axis with the largest width that divides its extent.
  Kernel epilogue;
  int width = 8;
  std::uint32_t channel_vector = 0, lane = 0;
  ExprId accumulator = kNoExpr;                       // the accumulator in `epilogue`
  std::vector<std::optional<std::uint32_t>> results;  // by `axes`: the axis in `epilogue`
  std::uint32_t result_group = 0, result_member = 0;  // axes in `epilogue`, for NCHW results

  std::int64_t element_bytes() const { return bits(dtype) / 8; }
  std::int64_t group_bytes() const { return channels * element_bytes(); }
  std::int64_t taps() const;
  // Bytes of a K slot: what a lane reads at once, or 16 for one ldmatrix row.
  std::int64_t slot_bytes() const { return group_bytes() % 16 == 0 ? 16 : group_bytes() % 8 == 0 ? 8 : 4; }
  std::int64_t slots_per_tap() const { return group_bytes() / slot_bytes(); }
  std::int64_t slots_per_step() const { return 32 / slot_bytes(); }
  // K slots of a window line. A line is padded to whole K steps if that needs no more steps; its positions are then in
  // different banks.
  std::int64_t slots_per_line() const;
  std::int64_t lines() const { return taps() / (axes.empty() ? 1 : axes.back().taps); }
  std::int64_t steps() const { return (lines() * slots_per_line() + slots_per_step() - 1) / slots_per_step(); }
  // K steps rounded up to a multiple of `steps_in_registers`.
  std::int64_t padded_steps() const {
    return (steps() + steps_in_registers() - 1) / steps_in_registers() * steps_in_registers();
  }
  bool has_empty_slots() const { return padded_steps() * slots_per_step() != taps() * slots_per_tap(); }

  std::int64_t columns() const { return (members + 7) / 8; }  // n8 tiles of a group's results
  std::int64_t results_per_block() const;
  // Warps per group: each takes a part of a block's results.
  std::int64_t parts() const { return results_per_block() / (16 * m16_tiles); }
  int warps() const { return static_cast<int>(groups_per_block * parts()); }
  int threads() const { return 32 * warps(); }
  std::int64_t positions() const;
  std::int64_t units() const { return (groups_per_block * group_bytes() + 15) / 16; }  // 16-byte units per position
  // Units of a position that neighbouring threads copy together: whole sectors.
  std::int64_t units_per_copy() const { return units() % 2 == 0 ? 2 : units() == 3 && warps() > 2 ? 3 : 1; }
  // NCHW image: threads that have different units of one position.
  std::int64_t threads_per_position() const;
  // Bytes from one position to the next in shared memory. An odd number of units, so that eight neighbouring positions
  // are in different banks; the last unit may be zeros.
  std::int64_t pitch() const { return 16 * ((units() + 1) | 1); }
  std::int64_t channels_per_block() const { return groups_per_block * members; }
  std::int64_t channel_vectors() const { return (channels_per_block() + 7) / 8; }
  // NCHW results: elements from one channel to the next in shared memory. The channels of four lanes are in different
  // banks.
  std::int64_t nchw_pitch() const { return (results_per_block() + 31) / 32 * 32 + 4; }
  std::int64_t shared_bytes() const;
  std::int64_t steps_in_registers() const;  // K steps with weights in registers at a time

  std::int64_t registers() const;                   // per thread, estimated
  double multiply_adds() const;                     // on tensor cores, including padding
  double blocks = 1, instructions = 0, cycles = 0;  // predicted; instructions summed over all threads
};

// For a GEMM with groups as its batch, or with few results.
std::optional<GroupedImplicitGemm> find_grouped_implicit_gemm(const Graph& graph, const Kernel& kernel,
                                                              const Contraction& contraction, const Target& target);
// For a kernel without a group axis so far.
std::optional<GroupedImplicitGemm> find_grouped_implicit_gemm(const Graph& graph, const Kernel& kernel,
                                                              const Target& target);

}  // namespace fusec
