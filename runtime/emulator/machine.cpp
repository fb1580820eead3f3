// The scheduler: fragments of a warp, warps of a block, barriers between them.
#include "runtime/emulator/machine.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "runtime/emulator/lanes.h"
#include "runtime/emulator/progress.h"
#include "runtime/emulator/synchronization.h"

namespace fusec::emulator {
namespace {

constexpr std::uint64_t kWarpSlice = 4096;  // instructions before another warp, or another fragment, has its turn
constexpr std::uint64_t kQuietInstructions = 1u << 15;  // of polling, before other blocks have their turn

// ---- fragments and joins

std::int32_t new_join(Warp& warp, const Join& join) {
  for (std::size_t i = 0; i < warp.joins.size(); ++i) {
    if (!warp.joins[i].used) {
      warp.joins[i] = join;
      return static_cast<std::int32_t>(i);
    }
  }
  warp.joins.push_back(join);
  return static_cast<std::int32_t>(warp.joins.size()) - 1;
}

// Where a join's last missing lane has come or gone, those that wait go on as one fragment.
void complete_join(Warp& warp, std::int32_t index) {
  Join& join = warp.joins[static_cast<std::size_t>(index)];
  if (join.missing != 0) return;
  const Join done = join;
  join.used = false;
  if (done.arrived != 0) warp.fragments.push_back({.pc = done.pc, .lanes = done.arrived, .join = done.parent});
}

// The lanes have exited, or will no longer come: nobody waits for them.
void drop_from_joins(Warp& warp, std::int32_t index, std::uint32_t lanes) {
  while (index >= 0) {
    Join& join = warp.joins[static_cast<std::size_t>(index)];
    const std::int32_t parent = join.parent;
    join.missing &= ~lanes;
    complete_join(warp, index);
    index = parent;
  }
}

// Lanes that have waited at a join while the others spun a whole slice go on without them.
bool release_joins(Warp& warp) {
  bool released = false;
  for (std::size_t i = 0; i < warp.joins.size(); ++i) {
    Join& join = warp.joins[i];
    if (!join.used || join.arrived == 0) continue;
    warp.fragments.push_back({.pc = join.pc, .lanes = join.arrived, .join = join.parent});
    join.arrived = 0;
    released = true;
  }
  return released;
}

// Splits lanes that take a branch from those that do not; `fragment` keeps the ones that fall through.
void diverge(Warp& warp, Fragment& fragment, std::uint32_t taken, std::uint32_t target, std::uint32_t meet) {
  if (meet != kNoReconvergence &&
      !(fragment.join >= 0 && warp.joins[static_cast<std::size_t>(fragment.join)].pc == meet)) {
    fragment.join =
        new_join(warp, {.pc = meet, .missing = fragment.lanes, .arrived = 0, .parent = fragment.join, .used = true});
  }
  fragment.lanes &= ~taken;
  Fragment other{.pc = target, .lanes = taken, .join = fragment.join};
  warp.fragments.push_back(other);
}

std::uint32_t return_address(const Warp& warp, const Instruction& in, int lane) {
  return static_cast<std::uint32_t>(load_raw(warp, in.a, 4, lane));
}

void exit_lanes(Warp& warp, std::uint32_t lanes) {
  Block& block = *warp.block;
  warp.live &= ~lanes;
  block.changed = true;
  block.live_threads -= static_cast<std::uint32_t>(std::popcount(lanes));
  if (block.live_threads != 0 || block.stopped) return;
  check_register_changes(warp, lanes);
  if (block.ranks != 0) check_last_exit(warp, lanes);
}

// A .sync instruction, for which all its lanes have come.
void execute_together(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  if (warp.products.any()) check_product_registers(warp, in, lanes);
  if (warp.undefined.any())
    execute_carefully(warp, in, lanes, lanes);
  else
    in.handler(warp, in, lanes);
}

// ---- one fragment

enum class Outcome : std::uint8_t { kGone, kBlocked, kSlice, kYield, kSwitch };

class FragmentRun {
 public:
  FragmentRun(Warp& warp, Fragment fragment, std::uint64_t budget)
      : warp_(warp), block_(*warp.block), code_(warp.program->code), fragment_(fragment), budget_(budget) {}

  // Runs until the fragment is gone (joined or exited), blocked, or out of its slice; then it is put back.
  Outcome run() {
    join_pc_ = join_pc();
    Outcome outcome = Outcome::kSwitch;
    while (outcome == Outcome::kSwitch) outcome = wants_care() ? execute<true>() : execute<false>();
    return outcome;
  }

  std::uint64_t used() const { return used_; }

 private:
  bool wants_care() const { return warp_.undefined.any() || warp_.products.any(); }

  // Carefully: undefined values are carried along, and the registers of products under way are watched.
  template <bool kCarefully>
  Outcome execute() {
    std::uint64_t left = budget_;
    while (left-- > 0) {
      if (fragment_.pc == join_pc_) {
        arrive();
        return Outcome::kGone;
      }
      const Instruction& in = code_[fragment_.pc];
      std::uint32_t lanes = fragment_.lanes;
      if (in.guard != kNoSlot) {
        const std::uint32_t guard = load_predicate(warp_, in.guard);
        lanes &= in.guard_negated ? ~guard : guard;
      }
      if (in.control == Control::kStraight) {
        count(in, lanes);
        if constexpr (kCarefully) {
          warp_.pc = fragment_.pc;
          if (warp_.products.any()) check_product_registers(warp_, in, lanes);
          if (warp_.undefined.any())
            execute_carefully(warp_, in, lanes, fragment_.lanes);
          else if (lanes != 0)
            in.handler(warp_, in, lanes);
        } else if (lanes != 0) {
          warp_.pc = fragment_.pc;
          in.handler(warp_, in, lanes);
        }
        ++fragment_.pc;
        if (warp_.wants_yield) {
          warp_.wants_yield = false;
          return put_back(FragmentState::kReady, Outcome::kYield);
        }
        if constexpr (kCarefully) {
          if (!wants_care()) return switch_care(left);
        }
        continue;
      }
      warp_.pc = fragment_.pc;
      if constexpr (kCarefully) check_control(warp_, lanes, fragment_.lanes);
      if (const std::optional<Outcome> outcome = control(in, lanes)) return *outcome;
      if (block_.stopped) return put_back(FragmentState::kReady, Outcome::kSlice);
      // A product has been issued.
      if (!kCarefully && in.control == Control::kWarpSync && warp_.products.any()) return switch_care(left);
    }
    return put_back(FragmentState::kReady, Outcome::kSlice);
  }

  Outcome switch_care(std::uint64_t left) {
    budget_ = left;
    return Outcome::kSwitch;
  }

  std::uint32_t join_pc() const {
    return fragment_.join >= 0 ? warp_.joins[static_cast<std::size_t>(fragment_.join)].pc : kNoReconvergence;
  }

  void count(const Instruction& in, std::uint32_t lanes) {
    ++used_;
    ++warp_.executed;
    const auto kind = static_cast<std::size_t>(in.kind);
    ++block_.counters.warp_instructions[kind];
    block_.counters.lane_instructions[kind] += static_cast<std::uint64_t>(std::popcount(lanes));
  }

  void arrive() {
    Join& join = warp_.joins[static_cast<std::size_t>(fragment_.join)];
    join.missing &= ~fragment_.lanes;
    join.arrived |= fragment_.lanes;
    complete_join(warp_, fragment_.join);
  }

  Outcome put_back(FragmentState state, Outcome outcome) {
    fragment_.state = state;
    warp_.fragments.push_back(fragment_);
    return outcome;
  }

  std::optional<Outcome> control(const Instruction& in, std::uint32_t lanes) {
    switch (in.control) {
      case Control::kStraight:
        break;
      case Control::kBranch:
        count(in, lanes);
        return branch(in, lanes);
      case Control::kBranchIndexed:
        count(in, lanes);
        return branch_indexed(in, lanes);
      case Control::kCall:
        count(in, lanes);
        return call(in, lanes);
      case Control::kReturn:
        count(in, lanes);
        return leave(in, lanes);
      case Control::kExit:
        count(in, lanes);
        return exit(lanes);
      case Control::kTrap: {
        count(in, lanes);
        if (lanes == 0) break;
        report(warp_, std::countr_zero(lanes), FindingKind::kTrap, "the kernel executed trap");
        block_.stopped = true;
        return exit(lanes);
      }
      case Control::kWarpSync:
        return warp_sync(in, lanes);
      case Control::kBarrier:
        return barrier(in, lanes);
    }
    ++fragment_.pc;
    return std::nullopt;
  }

  std::optional<Outcome> branch(const Instruction& in, std::uint32_t taken) {
    if (taken == 0) {
      ++fragment_.pc;
    } else if (taken == fragment_.lanes) {
      fragment_.pc = in.target;
    } else {
      diverge_to(taken, in.target, in.reconvergence);
      ++fragment_.pc;
      // The path that goes on is the one further back in the text, so that loops come round before what follows them.
      Fragment& other = warp_.fragments.back();
      if (other.pc < fragment_.pc) std::swap(other, fragment_);
      join_pc_ = join_pc();
    }
    return std::nullopt;
  }

  void diverge_to(std::uint32_t taken, std::uint32_t target, std::uint32_t meet) {
    if (meet == kAtReturn) meet = common_return();
    diverge(warp_, fragment_, taken, target, meet);
    join_pc_ = join_pc();
  }

  // In a function whose paths meet only where they return: there, if that is one place.
  std::uint32_t common_return() const {
    for (std::uint32_t pc = fragment_.pc; pc < code_.size(); ++pc) {
      if (code_[pc].control != Control::kReturn) continue;
      const std::uint32_t first = return_address(warp_, code_[pc], std::countr_zero(fragment_.lanes));
      for (int lane = 0; lane < kLanes; ++lane) {
        if ((fragment_.lanes >> lane & 1) != 0 && return_address(warp_, code_[pc], lane) != first) {
          return kNoReconvergence;
        }
      }
      return first;
    }
    return kNoReconvergence;
  }

  std::optional<Outcome> branch_indexed(const Instruction& in, std::uint32_t taken) {
    std::uint32_t left = taken;
    while (left != 0) {
      const int lane = std::countr_zero(left);
      const std::uint64_t index = load_raw(warp_, in.a, in.a_width, lane);
      std::uint32_t same = 0;
      for (int other = lane; other < kLanes; ++other) {
        if ((left >> other & 1) != 0 && load_raw(warp_, in.a, in.a_width, other) == index) same |= 1u << other;
      }
      left &= ~same;
      if (index >= in.count) {
        report(warp_, lane, FindingKind::kTrap, "brx.idx with an index beyond its targets");
        block_.stopped = true;
        return exit(same);
      }
      const std::uint32_t target = warp_.program->lists[in.list + index].slot;
      if (same == fragment_.lanes) {
        fragment_.pc = target;
        return std::nullopt;
      }
      diverge_to(same, target, in.reconvergence);
    }
    ++fragment_.pc;
    return std::nullopt;
  }

  std::optional<Outcome> call(const Instruction& in, std::uint32_t lanes) {
    if (lanes == 0) {
      ++fragment_.pc;
      return std::nullopt;
    }
    for (int lane = 0; lane < kLanes; ++lane) {
      if ((lanes >> lane & 1) != 0) store_raw(warp_, in.d, 4, lane, fragment_.pc + 1);
    }
    if (lanes != fragment_.lanes) {
      diverge_to(lanes, in.target, fragment_.pc + 1);
      ++fragment_.pc;
    } else {
      fragment_.pc = in.target;
    }
    return std::nullopt;
  }

  std::optional<Outcome> leave(const Instruction& in, std::uint32_t lanes) {
    if (lanes == 0) {
      ++fragment_.pc;
      return std::nullopt;
    }
    std::uint32_t left = lanes;
    while (left != 0) {
      const std::uint32_t target = return_address(warp_, in, std::countr_zero(left));
      std::uint32_t same = 0;
      for (int lane = 0; lane < kLanes; ++lane) {
        if ((left >> lane & 1) != 0 && return_address(warp_, in, lane) == target) same |= 1u << lane;
      }
      left &= ~same;
      if (same == fragment_.lanes) {
        fragment_.pc = target;
        return std::nullopt;
      }
      diverge_to(same, target, kNoReconvergence);
    }
    ++fragment_.pc;
    return std::nullopt;
  }

  std::optional<Outcome> exit(std::uint32_t lanes) {
    if (lanes == 0) {
      ++fragment_.pc;
      return std::nullopt;
    }
    exit_lanes(warp_, lanes);
    fragment_.lanes &= ~lanes;
    const std::int32_t join = fragment_.join;
    if (fragment_.lanes != 0) {
      ++fragment_.pc;
      drop_from_joins(warp_, join, lanes);
      return std::nullopt;
    }
    drop_from_joins(warp_, join, lanes);
    return Outcome::kGone;
  }

  // A guard that holds for some lanes only: the others go past the instruction on their own.
  void split_guard(std::uint32_t lanes) {
    if (lanes == fragment_.lanes) return;
    diverge_to(fragment_.lanes & ~lanes, fragment_.pc + 1, fragment_.pc + 1);
  }

  std::optional<Outcome> warp_sync(const Instruction& in, std::uint32_t lanes) {
    if (lanes == 0) {
      ++fragment_.pc;
      return std::nullopt;
    }
    const std::uint32_t members = member_mask(warp_, in, lanes);
    if ((members & ~lanes) == 0) {
      count(in, lanes);
      execute_together(warp_, in, lanes);
      ++fragment_.pc;
      return std::nullopt;
    }
    split_guard(lanes);
    return put_back(FragmentState::kAtWarpSync, Outcome::kBlocked);
  }

  std::optional<Outcome> barrier(const Instruction& in, std::uint32_t lanes) {
    if (lanes == 0) {
      ++fragment_.pc;
      return std::nullopt;
    }
    split_guard(lanes);
    count(in, lanes);
    const bool waits = arrive_at_barrier(warp_, in, lanes, fragment_.pc);
    ++fragment_.pc;
    if (!waits) return std::nullopt;
    return put_back(FragmentState::kAtBarrier, Outcome::kBlocked);
  }

  Warp& warp_;
  Block& block_;
  const std::vector<Instruction>& code_;
  Fragment fragment_;
  std::uint64_t budget_;
  std::uint64_t used_ = 0;
  std::uint32_t join_pc_ = kNoReconvergence;
};

// ---- one warp

// Executes a .sync instruction for which the waiting fragments together bring all members. True if one was.
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

// Runs one warp until it blocks, ends or has had its slice; the instructions it executed.
std::uint64_t run_warp(Warp& warp) {
  std::uint64_t used = 0;
  const std::uint64_t slice = std::min(kWarpSlice, warp.block->launch->options->max_instructions / 4 + 1);
  while (used < slice && !warp.block->stopped) {
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
    // Order is kept, so that fragments take turns.
    warp.fragments.erase(warp.fragments.begin() + static_cast<std::ptrdiff_t>(next));
    FragmentRun run(warp, fragment, slice);
    const Outcome outcome = run.run();
    used += run.used() + 1;
    if (outcome == Outcome::kSlice || (outcome == Outcome::kYield && ++warp.yields % kYieldsBeforeRelease == 0)) {
      release_joins(warp);
    }
    if (outcome == Outcome::kYield && warp.fragments.size() == 1) break;
  }
  return used;
}

// What takes longer to emulate than other instructions do counts for more against the budget of a block.
std::uint64_t extra_cost(const Block& block) {
  const Counters& counters = block.counters;
  constexpr auto kAtomic = static_cast<std::size_t>(InstructionClass::kAtomic);
  constexpr auto kBarrier = static_cast<std::size_t>(InstructionClass::kBarrier);
  return counters.lane_instructions[kAtomic] + counters.lane_instructions[kBarrier] / 8 +
         4 * counters.warp_instructions[kBarrier] + 8 * counters.barriers + counters.tensor_multiply_adds / 64 +
         (counters.bytes_read + counters.bytes_written) / 64 + block.copied / 8 + 4 * counters.shared_requests;
}

// One turn of every warp; the instructions executed.
std::uint64_t run_round(Cluster& cluster) {
  std::uint64_t progress = 0;
  for (const std::unique_ptr<Block>& block : cluster.blocks) {
    if (block->stopped || block->live_threads == 0) continue;
    std::uint64_t steps = 0;
    const std::uint64_t before = extra_cost(*block);
    for (Warp& warp : block->warps) {
      if (warp.live == 0 || block->stopped) continue;
      steps += run_warp(warp);
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
  return progress;
}

bool any_ready(const Cluster& cluster) {
  const auto ready = [](const Fragment& fragment) { return fragment.state == FragmentState::kReady; };
  return std::any_of(cluster.blocks.begin(), cluster.blocks.end(), [&](const std::unique_ptr<Block>& block) {
    return !block->stopped && std::any_of(block->warps.begin(), block->warps.end(), [&](const Warp& warp) {
      return std::any_of(warp.fragments.begin(), warp.fragments.end(), ready);
    });
  });
}

// Nobody executed anything. Barriers may just have been released, and joins may be; else it is a deadlock.
bool nobody_can_go_on(Cluster& cluster) {
  if (any_ready(cluster)) return false;
  bool released = false;
  for (const std::unique_ptr<Block>& block : cluster.blocks) {
    for (Warp& warp : block->warps) released = release_joins(warp) || released;
  }
  return !released;
}

// What a turn of mere polling has executed does not count against the blocks' budgets.
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
    const std::uint64_t progress = run_round(cluster);
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
    if (repeats || (cluster.quiet.polls && cluster.quiet.instructions >= kQuietInstructions)) {
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
