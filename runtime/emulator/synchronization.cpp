#include "runtime/emulator/synchronization.h"

#include <algorithm>
#include <bit>

#include "runtime/emulator/lanes.h"

namespace fusec::emulator {
namespace {

// Everything that `warps` (a mask) have seen or done happens before what the warps in `acquiring` do from now on.
void synchronize(Block& block, std::uint32_t warps, std::uint32_t acquiring) {
  const std::size_t count = block.warps.size(), columns = block.columns();
  std::vector<std::uint32_t> joined(columns);
  for (std::size_t w = 0; w < count; ++w) {
    if ((warps >> w & 1) == 0) continue;
    for (std::size_t x = 0; x < columns; ++x) joined[x] = std::max(joined[x], block.seen_at(w, x));
  }
  for (std::size_t w = 0; w < count; ++w) {
    if ((warps >> w & 1) != 0) joined[w] = block.now;
  }
  for (std::size_t w = 0; w < count; ++w) {
    if ((acquiring >> w & 1) == 0) continue;
    for (std::size_t x = 0; x < columns; ++x) block.seen_at(w, x) = joined[x];
  }
  ++block.now;
}

// The accesses to the block's memory that arrivals at the cluster barrier release: all, except those of relaxed
// arrivals after their last fence. Returns a row like those of Block::seen.
std::vector<std::uint32_t> released_at_cluster_barrier(const Block& block) {
  std::vector<std::uint32_t> released(block.columns());
  const auto join = [&](const std::uint32_t* from) {
    for (std::size_t x = 0; x < released.size(); ++x) released[x] = std::max(released[x], from[x]);
  };
  for (const Warp& warp : block.warps) {
    // A warp that has exited releases everything.
    if (warp.cluster_released || warp.live == 0) {
      join(&block.seen[warp.number * block.columns()]);
      released[warp.number] = block.now;
    } else if (!warp.releasable.empty()) {
      join(warp.releasable.data());
    }
  }
  for (std::size_t rank = 0; rank < block.ranks; ++rank) {
    const Block& other = *block.cluster->blocks[rank];
    const bool releases =
        std::ranges::any_of(other.warps, [](const Warp& warp) { return warp.cluster_released || warp.live == 0; });
    if (&other == &block) continue;
    join(&block.seen[block.row_of_rank(rank) * block.columns()]);
    std::uint32_t& time = released[block.column_of_rank(rank)];
    time = std::max(time, releases ? block.now : block.remote_fences[rank]);
  }
  return released;
}

// Everything released happens before what the whole cluster does from now on, except bulk copies without a wait.
void synchronize_all(Block& block) {
  const std::vector<std::uint32_t> released = released_at_cluster_barrier(block);
  for (std::size_t row = 0; row < block.rows(); ++row) {
    for (std::size_t x = 0; x < block.columns(); ++x) {
      std::uint32_t& seen = block.seen_at(row, x);
      seen = std::max(seen, released[x]);
    }
  }
  // All blocks have met, so a block may exit now without an unfinished remote access.
  block.remote_times = {};
  ++block.now;
}

// The number of threads that an arrival counts for. All live lanes of a warp count as a whole warp.
std::uint32_t arrivals(const Warp& warp, std::uint32_t lanes) {
  return lanes == warp.live ? kLanes : static_cast<std::uint32_t>(std::popcount(lanes));
}

bool complete(const Block& block, const BlockBarrier& barrier) {
  if (barrier.waiters.empty()) return false;
  if (barrier.expected != 0) return barrier.arrived >= barrier.expected;
  std::uint32_t present = 0;
  for (const BarrierWaiter& waiter : barrier.waiters) {
    present += static_cast<std::uint32_t>(std::popcount(waiter.lanes & block.warps[waiter.warp].live));
  }
  return present >= block.live_threads;
}

void check_divergence(Block& block, const BlockBarrier& barrier) {
  for (std::size_t i = 0; i < barrier.waiters.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const BarrierWaiter &one = barrier.waiters[j], &other = barrier.waiters[i];
      Warp& warp = block.warps[one.warp];
      if (one.warp != other.warp || one.pc == other.pc) continue;
      if (!warp.program->code[one.pc].aligned && !warp.program->code[other.pc].aligned) continue;
      warp.pc = other.pc;
      report(warp, std::countr_zero(other.lanes), FindingKind::kBarrierDivergence,
             "threads of one warp meet here and at the barrier of line " +
                 std::to_string(warp.program->origins[one.pc].line));
    }
  }
}

// Writes bar.red's result for the lanes that waited.
void deliver(Warp& warp, const BarrierWaiter& waiter, const BlockBarrier& barrier) {
  const Instruction& in = warp.program->code[waiter.pc];
  switch (static_cast<BarrierMode>(in.mode)) {
    case BarrierMode::kReducePopc:
      for (int lane = 0; lane < kLanes; ++lane) {
        if ((waiter.lanes >> lane & 1) != 0) store_raw(warp, in.d, 4, lane, barrier.true_count);
      }
      break;
    case BarrierMode::kReduceAnd:
      store_predicate(warp, in.d, barrier.true_count == barrier.predicate_count ? kAllLanes : 0, waiter.lanes);
      break;
    case BarrierMode::kReduceOr:
      store_predicate(warp, in.d, barrier.true_count != 0 ? kAllLanes : 0, waiter.lanes);
      break;
    default:
      break;
  }
}

void release(Block& block, BlockBarrier& barrier) {
  block.changed = true;
  check_divergence(block, barrier);
  std::uint32_t warps = 0, acquiring = 0;
  for (const BarrierWaiter& waiter : barrier.waiters) {
    warps |= 1u << waiter.warp;
    if (waiter.waits) acquiring |= 1u << waiter.warp;
  }
  synchronize(block, warps, acquiring);
  for (const BarrierWaiter& waiter : barrier.waiters) {
    if (!waiter.waits) continue;
    Warp& warp = block.warps[waiter.warp];
    deliver(warp, waiter, barrier);
    for (Fragment& fragment : warp.fragments) {
      if (fragment.state == FragmentState::kAtBarrier && (fragment.lanes & waiter.lanes) != 0 &&
          fragment.pc == waiter.pc + 1) {
        fragment.state = FragmentState::kReady;
      }
    }
  }
  ++block.counters.barriers;
  barrier = BlockBarrier{};
}

}  // namespace

std::uint32_t member_mask(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  if (in.members == kNoSlot) return in.aligned ? warp.live : lanes;
  const int first = std::countr_zero(lanes);
  const auto members = static_cast<std::uint32_t>(load_raw(warp, in.members, 4, first));
  // Lanes may have different, disjoint masks (tiles of a warp). The instruction then acts on each mask separately, and
  // executes once no lane of any mask is missing.
  std::uint32_t needed = members;
  for (int lane = first; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    const auto own = static_cast<std::uint32_t>(load_raw(warp, in.members, 4, lane));
    needed |= own;
    if ((own >> lane & 1) == 0) {
      report(warp, lane, FindingKind::kWarpSync, "executed by a lane that its member mask leaves out");
    }
  }
  return needed & warp.live;
}

bool arrive_at_barrier(Warp& warp, const Instruction& in, std::uint32_t lanes, std::uint32_t pc) {
  Block& block = *warp.block;
  const auto mode = static_cast<BarrierMode>(in.mode);
  if (mode == BarrierMode::kClusterArrive || mode == BarrierMode::kClusterWait) {
    return arrive_at_cluster_barrier(warp, in, lanes, pc);
  }
  const int first = std::countr_zero(lanes);
  const std::uint64_t number = load_raw(warp, in.a, 4, first);
  if (number >= block.barriers.size()) {
    report(warp, first, FindingKind::kBarrierDivergence, "a block has barriers 0 to 15 only");
    return false;
  }
  BlockBarrier& barrier = block.barriers[number];
  block.changed = true;
  if (in.b != kNoSlot) {
    const auto expected = static_cast<std::uint32_t>(load_raw(warp, in.b, 4, first));
    if (expected == 0 || expected % kLanes != 0) {
      report(warp, first, FindingKind::kBarrierDivergence,
             "a barrier's thread count is no multiple of the warp's size");
    }
    if (barrier.expected != 0 && barrier.expected != expected) {
      report(warp, first, FindingKind::kBarrierDivergence, "threads expect different counts at one barrier");
    }
    barrier.expected = std::max(expected, 1u);
  }
  const bool waits = mode != BarrierMode::kArrive;
  barrier.arrived += arrivals(warp, lanes);
  barrier.waiters.push_back({.warp = warp.number, .lanes = lanes, .pc = pc, .waits = waits});
  if (in.c != kNoSlot) {
    barrier.true_count += static_cast<std::uint32_t>(std::popcount(load_predicate(warp, in.c) & lanes));
    barrier.predicate_count += static_cast<std::uint32_t>(std::popcount(lanes));
  }
  return waits;
}

void merge_fragments(Warp& warp) {
  for (std::size_t i = 0; i < warp.fragments.size(); ++i) {
    for (std::size_t j = warp.fragments.size(); j-- > i + 1;) {
      Fragment &one = warp.fragments[i], &other = warp.fragments[j];
      if (one.pc != other.pc || one.join != other.join || one.state != FragmentState::kReady ||
          other.state != FragmentState::kReady) {
        continue;
      }
      one.lanes |= other.lanes;
      warp.fragments.erase(warp.fragments.begin() + static_cast<std::ptrdiff_t>(j));
    }
  }
}

void release_barriers(Block& block) {
  bool released = false;
  for (BlockBarrier& barrier : block.barriers) {
    if (!complete(block, barrier)) continue;
    release(block, barrier);
    released = true;
  }
  if (!released) return;
  for (Warp& warp : block.warps) {
    if (warp.fragments.size() > 1) merge_fragments(warp);
  }
}

void synchronize_warp(Warp& warp, std::uint32_t members) {
  Block& block = *warp.block;
  if ((warp.live & ~members) == 0) {
    block.seen_at(warp.number, warp.number) = block.now++;
    return;
  }
  if (warp.lane_seen.empty()) warp.lane_seen.assign(kLanes * kLanes, 0);
  std::array<std::uint32_t, kLanes> joined{};
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    if ((members >> lane & 1) == 0) continue;
    for (std::size_t x = 0; x < kLanes; ++x) joined[x] = std::max(joined[x], warp.lane_seen[lane * kLanes + x]);
  }
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    if ((members >> lane & 1) != 0) joined[lane] = block.now;
  }
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    if ((members >> lane & 1) != 0) std::ranges::copy(joined, &warp.lane_seen[lane * kLanes]);
  }
  ++block.now;
}

void check_last_exit(Warp& warp, std::uint32_t lanes) {
  const Block& block = *warp.block;
  for (std::size_t rank = 0; rank < block.ranks; ++rank) {
    std::uint32_t seen = 0;
    for (std::size_t w = 0; w < block.warps.size(); ++w)
      seen = std::max(seen, block.seen_at(w, block.column_of_rank(rank)));
    if (block.remote_times[rank] <= seen || block.synchronizes()) continue;
    report(warp, std::countr_zero(lanes), FindingKind::kSharedRace,
           "the block exits without waiting for block " + std::to_string(rank) +
               " of the cluster, which uses its shared memory");
  }
}

void check_register_changes(Warp& warp, std::uint32_t lanes) {
  constexpr std::size_t kGroup = 4;
  const std::vector<Warp>& warps = warp.block->warps;
  for (std::size_t w = 0; w < warps.size(); ++w) {
    if (warps[w].register_changes == warps[w / kGroup * kGroup].register_changes) continue;
    report(warp, std::countr_zero(lanes), FindingKind::kWarpSync,
           "the block exits, of which some warps of a group of four have executed setmaxnreg, and some not");
    return;
  }
}

bool arrive_at_cluster_barrier(Warp& warp, const Instruction& in, std::uint32_t lanes, std::uint32_t pc) {
  Cluster& cluster = *warp.block->cluster;
  warp.block->changed = true;
  if (static_cast<BarrierMode>(in.mode) == BarrierMode::kClusterArrive) {
    if ((warp.cluster_arrived & lanes) != 0) {
      report(warp, std::countr_zero(warp.cluster_arrived & lanes), FindingKind::kBarrierDivergence,
             "arrives at the barrier of the cluster again, without barrier.cluster.wait between");
    }
    warp.cluster_arrived |= lanes;
    warp.cluster_released = warp.cluster_released || !in.option;
    cluster.arrived += static_cast<std::uint32_t>(std::popcount(lanes));
    return false;
  }
  // A wait ends with the phase of its own arrival; every thread arrives once per phase.
  cluster.waiters.push_back({.block = warp.block->rank, .warp = warp.number, .lanes = lanes, .pc = pc});
  return true;
}

void release_cluster_barrier(Cluster& cluster) {
  std::uint32_t live = 0;
  for (const std::unique_ptr<Block>& block : cluster.blocks) live += block->live_threads;
  std::uint32_t waiting = 0;
  for (const Cluster::Waiter& waiter : cluster.waiters)
    waiting += static_cast<std::uint32_t>(std::popcount(waiter.lanes));
  if (cluster.waiters.empty() || waiting < live || cluster.arrived < live) return;
  cluster.synchronized = true;
  for (const std::unique_ptr<Block>& block : cluster.blocks) {
    synchronize_all(*block);
    block->changed = true;
  }
  for (const std::unique_ptr<Block>& block : cluster.blocks) {
    for (Warp& warp : block->warps) warp.cluster_released = false;
  }
  for (const Cluster::Waiter& waiter : cluster.waiters) {
    cluster.blocks[waiter.block]->warps[waiter.warp].cluster_arrived &= ~waiter.lanes;
    for (Fragment& fragment : cluster.blocks[waiter.block]->warps[waiter.warp].fragments) {
      if (fragment.state == FragmentState::kAtBarrier && fragment.pc == waiter.pc + 1 &&
          (fragment.lanes & waiter.lanes) != 0) {
        fragment.state = FragmentState::kReady;
      }
    }
  }
  cluster.waiters.clear();
  cluster.arrived = 0;
}

}  // namespace fusec::emulator
