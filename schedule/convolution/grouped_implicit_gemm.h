// Convolutions in groups of few channels, products of such groups, and convolutions of few results (an image's three at
// the end of a decoder): a block brings what the windows of its results have between them of its groups' channels to
// shared memory, and each of its warps multiplies one group's on tensor cores, taken from there for every tap of the
// window.
//
//   y[n, i, j, g, m] = sum over c, u, v of x[n, i + u - 1, j + v - 1, g, c] * w[g, m, c, u, v]
//
//   axes n, i with u, j with v: a block has 1 x 8 x 16 results; 10 x 18 places of them, 64 channels each, are copied
//   depth: slots of one tap's channels, 16 bytes of them, or 8 or 4 where groups have no more; slots that no tap has
//   are zeros, and what another group has is never multiplied (an infinity stays in its group)
//
// Channels that lie last in memory are copied 16 bytes at a time. Of those that lie first neighbouring threads load
// neighbouring places' elements, a channel after the other, and put 16 bytes of a place together (`image_is_nchw`); of
// results that lie so threads store neighbours along the last axis (`results_are_nchw`).
//
// A place lies where windows meet: results that a stride apart have one tap are neighbours in shared memory, so that a
// warp's 16 are read without conflicts whatever the stride is.
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

// An axis of the results along which a block has some, and the tap that moves along it: what is read depends on stride
// * result + dilation * tap. One of them may be missing: images of a batch have no tap, of one result there is no axis.
struct ImplicitGemmAxis {
  std::optional<std::uint32_t> result, tap;
  std::int64_t stride = 1, dilation = 1, taps = 1;
  int results = 1;  // of a block

  // Taps after which places repeat: that many are a phase each, in which neighbouring results' places are neighbours.
  std::int64_t phases() const { return std::min(stride / std::gcd(stride, dilation), taps); }
  // Of the tap in its phase, in results.
  std::int64_t later(std::int64_t of_tap) const { return dilation * (of_tap / phases() * phases()) / stride; }
  std::int64_t reach() const { return later(taps - 1); }
  std::int64_t places_of_phase() const { return results + reach(); }
  std::int64_t places() const { return phases() * places_of_phase(); }
  std::int64_t place(std::int64_t of_tap) const { return of_tap % phases() * places_of_phase() + later(of_tap); }
};

struct GroupedImplicitGemm {
  Kernel kernel;  // channels of the results as group and member
  Contraction product;
  DType dtype = DType::kFloat16;  // what is multiplied: on tensor cores, float32 as tf32 where that is allowed
  ExprId image = kNoExpr, weights = kNoExpr;  // loads
  std::vector<ExprId> guards;                 // of the image
  std::uint32_t group = 0, member = 0;        // of one group: an axis that no index has
  std::optional<std::uint32_t> channel;       // of a group
  bool image_is_nchw = false, results_are_nchw = false;
  IndexExpr channel_stride = 1;  // of the image
  std::int64_t groups = 1, members = 1, channels = 1;
  bool weights_in_words = false;       // do four bytes of channels lie together, in one piece?
  std::vector<ImplicitGemmAxis> axes;  // as the results have them

  int groups_of_block = 1;
  int pieces = 1;                 // of 16 results each, of a warp
  std::int64_t piece_places = 0;  // from one piece to the next
  std::int64_t half_places = 0;   // from a piece's first eight results to its others

  // The results with their channels in eights, behind all other axes; or what lies last of them in as many as its
  // extent is a multiple of.
  Kernel eights;
  int width = 8;
  std::uint32_t eight = 0, lane = 0;
  ExprId sum = kNoExpr;                               // there
  std::vector<std::optional<std::uint32_t>> results;  // of `axes`, there
  std::uint32_t result_group = 0, result_member = 0;  // there, where results are turned

  std::int64_t element_bytes() const { return bits(dtype) / 8; }
  std::int64_t group_bytes() const { return channels * element_bytes(); }
  std::int64_t taps() const;
  // Of a slot: what a lane reads at a time, or with 16 what ldmatrix has of a line.
  std::int64_t slot_bytes() const { return group_bytes() % 16 == 0 ? 16 : group_bytes() % 8 == 0 ? 8 : 4; }
  std::int64_t slots_of_tap() const { return group_bytes() / slot_bytes(); }
  std::int64_t slots_of_step() const { return 32 / slot_bytes(); }
  // Taps of a line begin a step of their own where that takes no more steps: their places are then in different banks.
  std::int64_t slots_of_line() const;
  std::int64_t lines() const { return taps() / (axes.empty() ? 1 : axes.back().taps); }
  std::int64_t steps() const { return (lines() * slots_of_line() + slots_of_step() - 1) / slots_of_step(); }
  // As many as are taken in turns of `steps_together`.
  std::int64_t padded_steps() const { return (steps() + steps_together() - 1) / steps_together() * steps_together(); }
  bool has_empty_slots() const { return padded_steps() * slots_of_step() != taps() * slots_of_tap(); }

  std::int64_t columns() const { return (members + 7) / 8; }  // eights of a group's results
  std::int64_t results_of_block() const;
  std::int64_t parts() const { return results_of_block() / (16 * pieces); }  // of a block's results, a warp's each
  int warps() const { return static_cast<int>(groups_of_block * parts()); }
  int threads() const { return 32 * warps(); }
  std::int64_t places() const;
  std::int64_t units() const { return (groups_of_block * group_bytes() + 15) / 16; }  // of 16 bytes, of a place
  // Of a place, copied by neighbouring threads: whole sectors.
  std::int64_t units_together() const { return units() % 2 == 0 ? 2 : units() == 3 && warps() > 2 ? 3 : 1; }
  // Of an image that is turned: threads that have different units of a place.
  std::int64_t sides_of_place() const;
  // An odd number of units, the last one zeros: eight neighbouring places are in different banks.
  std::int64_t pitch() const { return 16 * ((units() + 1) | 1); }
  std::int64_t channels_of_block() const { return groups_of_block * members; }
  std::int64_t eights_of_block() const { return (channels_of_block() + 7) / 8; }
  // Of a channel's results to the next one's, where these are turned: four lanes' channels are in different banks.
  std::int64_t nchw_pitch() const { return (results_of_block() + 31) / 32 * 32 + 4; }
  std::int64_t shared_bytes() const;
  std::int64_t steps_together() const;  // whose weights are in registers at a time

  std::int64_t registers() const;                   // of a thread, about
  double multiply_adds() const;                     // on tensor cores, those of what is empty with them
  double blocks = 1, instructions = 0, cycles = 0;  // as predicted; instructions of all threads
};

// Of a product whose batch are groups, or which has few results.
std::optional<GroupedImplicitGemm> find_grouped_implicit_gemm(const Graph& graph, const Kernel& kernel,
                                                              const Contraction& product, const Target& target);
// Of a kernel whose groups are no axis yet.
std::optional<GroupedImplicitGemm> find_grouped_implicit_gemm(const Graph& graph, const Kernel& kernel,
                                                              const Target& target);

}  // namespace fusec
