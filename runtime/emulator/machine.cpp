// The scheduler: fragments of a warp, warps of a block and blocks of a cluster run in turns.
#include "runtime/emulator/machine.h"

#include <algorithm>
#include <bit>

#include "ir/budget.h"
#include "runtime/emulator/fragment_run.h"
#include "runtime/emulator/progress.h"
#include "runtime/emulator/reconvergence.h"
#include "runtime/emulator/synchronization.h"

namespace fusec::emulator {
namespace {

constexpr std::uint64_t kWarpSlice = 4096;              // instructions in a turn of a warp or fragment
constexpr std::uint64_t kQuietInstructions = 1u << 15;  // of polling before other blocks run

// ---- one warp

// Executes a .sync instruction for which fragments with all members wait. Returns whether there was one.
bool try_warp_sync(Warp& warp) {
  for (std::size_t i = 0; i < warp.fragments.size(); ++i) {
    const Fragment first = warp.fragments[i];
    if (first.state != FragmentState::kAtWarpSync) continue;
    const Instruction& in = warp.program->code[first.pc];
    std::uint32_t together = 0;
    for (const Fragment& other : warp.fragments) {
      if (other.state != FragmentState::kAtWarpSync) continue;
      const bool same = other.pc == first.pc || (in.option && warp.program->code[other.pc].option &&
                                                 warp.program->code[other.pc].handler == in.handler);
      if (same) together |= other.lanes;
    }
    warp.pc = first.pc;
    const std::uint32_t members = member_mask(warp, in, first.lanes);
    if ((members & ~together) != 0) continue;
    const std::uint32_t executing = together & (members | first.lanes);
    execute_together(warp, in, executing);
    for (Fragment& other : warp.fragments) {
      if (other.state != FragmentState::kAtWarpSync || (other.lanes & executing) == 0) continue;
      other.state = FragmentState::kReady;
      ++other.pc;
    }
    merge_fragments(warp);
    return true;
  }
  return false;
}

std::ptrdiff_t ready_fragments(const Warp& warp) {
  return std::count_if(warp.fragments.begin(), warp.fragments.end(),
                       [](const Fragment& fragment) { return fragment.state == FragmentState::kReady; });
}

// A turn: the instructions executed, and whether all that ran let others run (`yields`).
struct Turn {
  std::uint64_t used = 0;
  bool yields = false;
};

// Runs one warp until it blocks, ends or has used its slice.
Turn run_warp(Warp& warp) {
  std::uint64_t used = 0;
  const std::uint64_t slice = std::min(kWarpSlice, warp.block->launch->options->max_instructions / 4 + 1);
  while (used < slice && !warp.block->stopped) {
    look_at_budget();
    std::size_t next = warp.fragments.size();
    for (std::size_t i = 0; i < warp.fragments.size(); ++i) {
      if (warp.fragments[i].state == FragmentState::kReady) {
        next = i;
        break;
      }
    }
    if (next == warp.fragments.size()) {
      if (!try_warp_sync(warp)) break;
      ++used;
      continue;
    }
    const Fragment fragment = warp.fragments[next];
    // Keep the order, so that fragments run in turns.
    warp.fragments.erase(warp.fragments.begin() + static_cast<std::ptrdiff_t>(next));
    const auto [outcome, executed] = run_fragment(warp, fragment, slice);
    used += executed + 1;
    if (outcome == FragmentOutcome::kSlice ||
        (outcome == FragmentOutcome::kYield && ++warp.yields % kYieldsBeforeRelease == 0)) {
      release_joins(warp);
    }
    if (outcome == FragmentOutcome::kYield && ready_fragments(warp) == 1) return {used, true};
  }
  return {used, used == 0};
}

// Additional budget cost of instructions that take longer to emulate.
std::uint64_t extra_cost(const Block& block) {
  const Counters& counters = block.counters;
  constexpr auto kAtomic = static_cast<std::size_t>(InstructionClass::kAtomic);
  constexpr auto kBarrier = static_cast<std::size_t>(InstructionClass::kBarrier);
  return counters.lane_instructions[kAtomic] + counters.lane_instructions[kBarrier] / 8 +
         4 * counters.warp_instructions[kBarrier] + 8 * counters.barriers + counters.tensor_multiply_adds / 64 +
         (counters.bytes_read + counters.bytes_written) / 64 + block.copied / 8 + 4 * counters.shared_requests;
}

// Runs one turn of every warp.
Turn run_round(Cluster& cluster) {
  std::uint64_t progress = 0;
  bool yields = true;
  for (const std::unique_ptr<Block>& block : cluster.blocks) {
    if (block->stopped || block->live_threads == 0) continue;
    std::uint64_t steps = 0;
    const std::uint64_t before = extra_cost(*block);
    for (Warp& warp : block->warps) {
      if (warp.live == 0 || block->stopped) continue;
      const Turn turn = run_warp(warp);
      steps += turn.used;
      yields = yields && turn.yields;
      if (warp.live == 0) ++progress;
    }
    progress += steps;
    release_barriers(*block);
    block->executed += steps + extra_cost(*block) - before;
    if (block->launch->stop.load(std::memory_order_relaxed)) block->stopped = true;
    if (block->executed > block->launch->options->max_instructions && !block->stopped) {
      report_runaway(*block, "the block has spent its budget of instructions; it may never end");
    }
  }
  if (cluster.blocks.size() > 1) release_cluster_barrier(cluster);
  return {progress, yields && progress != 0};
}

bool any_ready(const Cluster& cluster) {
  return std::any_of(cluster.blocks.begin(), cluster.blocks.end(), [&](const std::unique_ptr<Block>& block) {
    return !block->stopped && std::any_of(block->warps.begin(), block->warps.end(),
                                          [](const Warp& warp) { return ready_fragments(warp) > 0; });
  });
}

// Call when no warp executed anything. Without a ready fragment, lets lanes that wait at joins continue. Returns true
// for a deadlock, if there are no such lanes.
bool nobody_can_go_on(Cluster& cluster) {
  if (any_ready(cluster)) return false;
  bool released = false;
  for (const std::unique_ptr<Block>& block : cluster.blocks) {
    for (Warp& warp : block->warps) released = release_joins(warp) || released;
  }
  return !released;
}

// Restores the blocks' budgets after a turn that only polled.
void forgive(Cluster& cluster, const std::vector<std::uint64_t>& before) {
  for (std::size_t i = 0; i < before.size(); ++i) cluster.blocks[i]->executed = before[i];
}

void remember(const Cluster& cluster, std::vector<std::uint64_t>& executed) {
  executed.resize(cluster.blocks.size());
  for (std::size_t i = 0; i < executed.size(); ++i) executed[i] = cluster.blocks[i]->executed;
}

}  // namespace

ClusterOutcome run_cluster(Cluster& cluster, std::uint64_t slice) {
  std::vector<std::uint64_t> before;
  remember(cluster, before);
  std::uint64_t used = 0;
  while (used < slice) {
    const auto [progress, yields] = run_round(cluster);
    if (std::none_of(cluster.blocks.begin(), cluster.blocks.end(),
                     [](const auto& block) { return !block->stopped && block->live_threads != 0; })) {
      return ClusterOutcome::kEnded;
    }
    if (progress == 0 && nobody_can_go_on(cluster)) {
      report_deadlock(cluster);
      return ClusterOutcome::kEnded;
    }
    const bool repeats = repeats_itself(cluster, progress);
    if (repeats && !cluster.quiet.reads_global) {
      report_deadlock(cluster);
      return ClusterOutcome::kEnded;
    }
    cluster.quiet.instructions += progress;
    if (cluster.quiet.rounds == 0) remember(cluster, before);
    const bool waits = yields || cluster.quiet.instructions >= kQuietInstructions;
    if (repeats || (cluster.quiet.rounds > 0 && cluster.quiet.polls && waits)) {
      forgive(cluster, before);
      cluster.quiet.last_turn = repeats ? kQuietInstructions : cluster.quiet.instructions;
      cluster.quiet.instructions = 0;
      return ClusterOutcome::kPolls;
    }
    used += progress + 1;
  }
  return ClusterOutcome::kGoesOn;
}

}  // namespace fusec::emulator
