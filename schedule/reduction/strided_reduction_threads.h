// Assigns threads and blocks to a strided reduction: how many columns a strip has, how many of its lines a group of
// threads takes at once, and how many blocks share the lines. The result must leave room in shared memory for the
// threads' partial results.
#pragma once

#include <cstdint>
#include <optional>

#include "schedule/reduction/blocks_per_row.h"
#include "schedule/reduction/strided_reduction.h"
#include "schedule/target/target.h"

namespace fusec {

inline constexpr int kMaxRegisterVectors = 16;  // kept by a thread between its loops
inline constexpr int kMaxStridedThreads = 512;  // of a group

// The size of a reduction, with symbols at their hints.
struct StridedReductionWork {
  std::int64_t groups = 1, length = 1;  // points of the outer axes; elements per row
  std::int64_t stages = 1;
  int partial = 4;                                      // bytes of a partial result
  int all = 4;                                          // bytes of the partial results that have memory at once
  int bits = 32;                                        // of the widest element
  bool again = false;                                   // operands may be read twice
  std::optional<RowOnePass::Kind> pass = std::nullopt;  // set if one pass makes both reductions
};

// `widest_bits`: bits of the widest element. `pass`: the one pass that makes both reductions, if any.
StridedReductionWork strided_reduction_work(const StridedReduction& plan, int widest_bits,
                                            const std::optional<RowOnePass>& pass);

// Sets the rows, the threads and the blocks of a group for the plan's kind of strips. False if other schedules are
// faster, or if shared memory has no room.
bool choose_threads(StridedReduction& plan, const StridedReductionWork& work, const Target& target);

// Whether a group may have this many threads: at most `most`, with room for their partial results.
bool may_have_threads(int threads, const StridedReduction& plan, const StridedReductionWork& work,
                      int most = kMaxStridedThreads);

// Threads of a group with `group_threads` threads that work.
int working_threads(int group_threads, const StridedReduction& plan);
// Threads of a group that work on `rows` interleaved rows: each lane of a thread's vectors of `width` elements belongs to one row.
int interleaved_threads(int group_threads, int rows, int width);

// The number of columns that makes rows and vectors whole and avoids shared sectors; strips are multiples of it.
int columns_of_strip(const StridedReduction& plan, const StridedReductionWork& work);

// What decides how many blocks share the lines of a group.
RowsToReduce rows_to_reduce(const StridedReduction& plan, const StridedReductionWork& work);

// The least number of vectors per thread in a chunk. Combining the threads' results costs about as much as a few
// vectors, and more for one-pass accumulators.
int vectors_of_chunk(const StridedReduction& plan);

// True if shared memory has room for the partial results of `threads` threads.
bool has_room_for_results(const StridedReduction& plan, int threads);

}  // namespace fusec
