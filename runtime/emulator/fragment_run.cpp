#include "runtime/emulator/fragment_run.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "runtime/emulator/bulk_store.h"
#include "runtime/emulator/lanes.h"
#include "runtime/emulator/reconvergence.h"
#include "runtime/emulator/synchronization.h"

namespace fusec::emulator {
namespace {

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
  if (warp.program->has_bulk_stores) check_sources_at_exit(warp, lanes);
  if (block.ranks != 0) check_last_exit(warp, lanes);
}

using Outcome = FragmentOutcome;

class FragmentRun {
 public:
  FragmentRun(Warp& warp, Fragment fragment, std::uint64_t budget)
      : warp_(warp), block_(*warp.block), code_(warp.program->code), fragment_(fragment), budget_(budget) {}

  Outcome run() {
    join_pc_ = join_pc();
    std::optional<Outcome> outcome;
    while (!outcome) outcome = wants_care() ? execute<true>() : execute<false>();
    return *outcome;
  }

  std::uint64_t used() const { return used_; }

 private:
  bool wants_care() const { return warp_.undefined.any() || warp_.products.any(); }

  // kCarefully: track undefined values and check registers of unfinished products.
  // Returns nothing when the other variant is needed from here on.
  template <bool kCarefully>
  std::optional<Outcome> execute() {
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
      if (const std::optional<Outcome> outcome = control(in, lanes)) return outcome;
      if (block_.stopped) return put_back(FragmentState::kReady, Outcome::kSlice);
      // A product has been issued.
      if (!kCarefully && in.control == Control::kWarpSync && warp_.products.any()) return switch_care(left);
    }
    return put_back(FragmentState::kReady, Outcome::kSlice);
  }

  std::optional<Outcome> switch_care(std::uint64_t left) {
    budget_ = left;
    return std::nullopt;
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
      // Continue with the path at the lower pc, so that loops finish before the code after them.
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

  // For paths of a function that meet only after its return: the return address, if all lanes have the same one.
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

  static bool cluster_barrier(const Instruction& in) {
    const auto mode = static_cast<BarrierMode>(in.mode);
    return mode == BarrierMode::kClusterArrive || mode == BarrierMode::kClusterWait;
  }

  // If the guard is true only for some lanes, splits off the others, which skip the instruction.
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
    if (in.aligned && lanes != fragment_.lanes && !cluster_barrier(in)) {
      report(warp_, std::countr_zero(fragment_.lanes & ~lanes), FindingKind::kBarrierDivergence,
             "a part of a warp executes an aligned barrier, which the predicate keeps other lanes from");
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

}  // namespace

void execute_together(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  if (warp.products.any()) check_product_registers(warp, in, lanes);
  if (warp.undefined.any())
    execute_carefully(warp, in, lanes, lanes);
  else
    in.handler(warp, in, lanes);
}

FragmentResult run_fragment(Warp& warp, const Fragment& fragment, std::uint64_t budget) {
  FragmentRun run(warp, fragment, budget);
  const Outcome outcome = run.run();
  return {outcome, run.used()};
}

}  // namespace fusec::emulator
