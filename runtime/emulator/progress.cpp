#include "runtime/emulator/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace fusec::emulator {
namespace {

constexpr std::uint64_t kQuietRounds = 4;  // rounds before states are compared, since most waits end sooner

class Hash {
 public:
  void add(std::uint64_t word) { value_ = std::rotl((value_ ^ word) * 0x9e3779b97f4a7c15u, 29); }
  void add(const std::vector<std::byte>& bytes) {  // size is a multiple of eight
    for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
      std::uint64_t word;
      std::memcpy(&word, &bytes[at], 8);
      add(word);
    }
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0x2545f4914f6cdd1du;
};

// A hash of all state that determines what the cluster does next, except memory and barriers.
std::uint64_t state_of(const Cluster& cluster) {
  Hash hash;
  for (const std::unique_ptr<Block>& block : cluster.blocks) {
    for (const Warp& warp : block->warps) {
      hash.add(std::uint64_t{warp.live} << 32 | warp.carry);
      if (warp.live == 0) continue;
      hash.add(warp.yields % kYieldsBeforeRelease);
      for (const Fragment& fragment : warp.fragments) {
        hash.add(std::uint64_t{fragment.pc} << 32 | fragment.lanes);
        hash.add(std::uint64_t{static_cast<std::uint32_t>(fragment.join)} << 8 |
                 static_cast<std::uint64_t>(fragment.state));
      }
      for (const Join& join : warp.joins) {
        if (!join.used) continue;
        hash.add(std::uint64_t{join.pc} << 32 | join.missing);
        hash.add(std::uint64_t{join.arrived} << 32 | static_cast<std::uint32_t>(join.parent));
      }
      hash.add(warp.registers);
    }
  }
  return hash.value();
}

// The cost of state_of() in instructions.
std::uint64_t state_cost(const Cluster& cluster) {
  constexpr std::uint64_t kBytesAnInstruction = 256;
  std::uint64_t bytes = 0;
  for (const std::unique_ptr<Block>& block : cluster.blocks) {
    for (const Warp& warp : block->warps) bytes += warp.live == 0 ? 0 : warp.registers.size();
  }
  return bytes / kBytesAnInstruction;
}

std::string variable_at(const Program& program, std::uint64_t offset) {
  for (const Placed& placed : program.shared) {
    if (offset >= placed.offset && offset < placed.offset + placed.bytes) return placed.name;
  }
  return offset >= program.dynamic_shared_offset ? "dynamic shared memory" : "";
}

std::string barrier_text(const Block& block, std::uint32_t warp, std::uint32_t pc) {
  for (std::size_t number = 0; number < block.barriers.size(); ++number) {
    const BlockBarrier& barrier = block.barriers[number];
    std::uint32_t threads = 0;
    bool here = false;
    for (const BarrierWaiter& waiter : barrier.waiters) {
      here = here || (waiter.warp == warp && waiter.pc == pc);
      threads += static_cast<std::uint32_t>(std::popcount(waiter.lanes));
    }
    if (!here) continue;
    return fmt::format("waits at barrier {}, which not all threads reach: {} of {} have come", number, threads,
                       barrier.expected != 0 ? barrier.expected : block.live_threads);
  }
  return "waits at the barrier of the cluster, which not all threads reach";
}

// Reports the mbarrier of the warp's last failed wait. Returns false if there is none.
bool report_mbarrier(Warp& warp, int lane) {
  const FailedWait& wait = warp.failed_wait;
  if (wait.home == nullptr) return false;
  const auto found = wait.home->mbarriers.find(wait.offset);
  if (found == wait.home->mbarriers.end()) return false;
  const MBarrier& barrier = found->second;
  warp.pc = wait.pc;
  std::string text = fmt::format(
      "waits for a phase of the mbarrier at {:#x} that nobody can complete: {} of {} arrivals and {} bytes of copies "
      "are missing in phase {}",
      wait.offset, barrier.pending, barrier.expected, barrier.bytes, barrier.phase);
  if (wait.home != warp.block) text += fmt::format(", in block {} of the cluster", wait.home->rank);
  report(warp, lane, FindingKind::kDeadlock, std::move(text), wait.offset, variable_at(*warp.program, wait.offset));
  return true;
}

void report_fragment(Warp& warp, const Fragment& fragment) {
  const int lane = std::countr_zero(fragment.lanes);
  switch (fragment.state) {
    case FragmentState::kAtWarpSync:
      warp.pc = fragment.pc;
      report(warp, lane, FindingKind::kWarpSync, "waits for lanes of its member mask that never come");
      return;
    case FragmentState::kAtBarrier:
      warp.pc = fragment.pc - 1;
      report(warp, lane, FindingKind::kDeadlock, barrier_text(*warp.block, warp.number, warp.pc));
      return;
    case FragmentState::kReady:
      if (report_mbarrier(warp, lane)) return;
      warp.pc = fragment.pc;
      report(warp, lane, FindingKind::kRunaway,
             "loops for ever: the registers and the memory that it reads no longer change");
      return;
  }
}

}  // namespace

bool repeats_itself(Cluster& cluster, std::uint64_t instructions) {
  Quiet& quiet = cluster.quiet;
  bool changed = false, polled = false;
  for (const std::unique_ptr<Block>& block : cluster.blocks) {
    changed = changed || block->changed;
    quiet.reads_global = quiet.reads_global || block->reads_global;
    polled = polled || block->polls;
    block->changed = block->reads_global = block->polls = false;
  }
  cluster.polls = cluster.polls || polled;
  if (changed) {
    quiet = Quiet{};
    cluster.changed = true;
    return false;
  }
  quiet.polls = quiet.polls || polled;
  quiet.since_state += instructions + 1;
  if (++quiet.rounds < kQuietRounds || quiet.since_state < state_cost(cluster)) return false;
  quiet.since_state = 0;
  const std::uint64_t state = state_of(cluster);
  if (++quiet.states > 1 && state == quiet.state) return true;
  // Save a new state at each power of two, so that a cycle of any length is found (Brent's algorithm).
  if (std::has_single_bit(quiet.states)) {
    quiet.state = state;
    quiet.reads_global = false;
  }
  return false;
}

void report_deadlock(Cluster& cluster) {
  for (const std::unique_ptr<Block>& block : cluster.blocks) {
    if (block->stopped) continue;
    for (Warp& warp : block->warps) {
      const std::vector<Fragment> fragments = warp.fragments;
      for (const Fragment& fragment : fragments) report_fragment(warp, fragment);
    }
    block->stopped = true;
  }
}

void report_runaway(Block& block, std::string message) {
  for (Warp& warp : block.warps) {
    if (warp.fragments.empty()) continue;
    warp.pc = warp.fragments.front().pc;
    report(warp, std::countr_zero(warp.fragments.front().lanes), FindingKind::kRunaway, std::move(message));
    break;
  }
  block.stopped = true;
  block.launch->stop = true;
}

}  // namespace fusec::emulator
