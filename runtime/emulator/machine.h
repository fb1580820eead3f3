// The state of a launch in progress: launch, cluster, block, warp, fragment of a warp.
//
// A warp's lanes are split into fragments that execute separately. A fragment that reaches the point where its branch's
// paths meet (a Join) waits there for the other lanes and continues with them as one fragment.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/emulator/memory.h"
#include "runtime/emulator/module_data.h"
#include "runtime/emulator/program.h"
#include "runtime/emulator/readings.h"
#include "runtime/emulator/undefined_values.h"
#include "runtime/emulator/wgmma_in_flight.h"

namespace fusec::emulator {

struct Block;
struct LaunchState;

enum class FragmentState : std::uint8_t { kReady, kAtWarpSync, kAtBarrier };

struct Fragment {
  std::uint32_t pc = 0;
  std::uint32_t lanes = 0;
  std::int32_t join = -1;
  FragmentState state = FragmentState::kReady;
};

struct Join {
  std::uint32_t pc = 0;
  std::uint32_t missing = 0;  // lanes that have not arrived
  std::uint32_t arrived = 0;
  std::int32_t parent = -1;
  bool used = false;
};

// A cp.async that a lane has issued and not yet waited for.
struct AsyncCopy {
  std::uint32_t lane = 0;
  std::uint32_t group = 0;  // the lane's commit count when it was issued
  std::uint32_t shared = 0;
  std::uint32_t bytes = 0;
  std::array<std::byte, 16> data{};
};

// The last failed wait of a warp for an mbarrier. `home` is null if the last wait succeeded.
struct FailedWait {
  Block* home = nullptr;
  std::uint32_t offset = 0, pc = 0;
};

// A bulk store that a lane has issued. Its source may be written after wait_group.read, its target accessed after
// wait_group.
struct BulkStore {
  struct Piece {
    std::uint64_t address = 0;
    std::uint32_t bytes = 0;
  };
  std::uint32_t lane = 0;
  std::uint32_t group = 0;  // the lane's commit count when it was issued
  bool source_read = false;
  std::vector<Piece> sources;  // in the block's shared memory
  std::vector<Piece> targets;  // in global memory
};

struct Warp {
  Block* block = nullptr;
  const Program* program = nullptr;
  std::uint32_t number = 0;  // in its block
  std::uint32_t exists = 0;  // mask of lanes that are threads
  std::uint32_t live = 0;    // mask of threads that have not exited
  std::uint32_t pc = 0;      // of the instruction being executed, for findings
  std::uint64_t executed = 0;
  std::vector<std::byte> registers;
  std::vector<std::byte> local;             // lane after lane
  std::vector<std::uint8_t> local_written;  // one flag per byte of `local`
  std::vector<Fragment> fragments;
  std::vector<Join> joins;
  std::vector<AsyncCopy> copies;
  std::array<std::uint32_t, kLanes> commits{};
  std::vector<BulkStore> bulk_stores;
  std::array<std::uint32_t, kLanes> bulk_commits{};
  // Rows like those of Block::seen. `releasable`: what strong writes release since the last fence (empty: no fence
  // yet). `observed`: what strong reads have read, which the next fence acquires (empty: nothing).
  std::vector<std::uint32_t> releasable, observed;
  std::uint32_t carry = 0;  // the condition code register, one bit per lane
  std::uint64_t yields = 0;
  bool wants_yield = false;  // set by an instruction that lets others run (nanosleep, a failed try_wait)
  FailedWait failed_wait;
  // Accesses of lane x to the block's shared memory up to time lane_seen[32 * l + x] happen before what lane l does
  // now. Set by bar.warp.sync for a part of the warp; empty if there was none.
  std::vector<std::uint32_t> lane_seen;
  UndefinedValues undefined;
  WgmmaInFlight products;
  std::uint32_t register_changes = 0;  // executed setmaxnreg; must be equal for all warps of a warpgroup
  std::uint32_t cluster_arrived = 0;   // lanes that arrived at the current phase of the cluster barrier
  bool cluster_released = false;       // an arrival of that phase was not relaxed

  std::byte* lanes(Slot slot) { return registers.data() + slot; }
  const std::byte* source(Slot slot) const {
    return (slot & kConstantBit) != 0 ? program->constants.data() + (slot & ~kConstantBit) : registers.data() + slot;
  }
};

// The shadow state of four bytes of shared memory. Times are values of Block::now, which every synchronization
// advances.
struct SharedWord {
  std::uint32_t write_time = 0;
  Reading reading;                          // first reading since the last write; Block::readings holds the others
  std::uint16_t writer = 0;                 // a thread, kAsyncWriter, or kRemoteThread + rank
  std::uint8_t allocated = 0, written = 0;  // one bit per byte
  std::uint8_t written_bytes = 0;           // bytes of the last write, by `writer`; one bit per byte
  std::uint8_t pending : 4 = 0;             // target bytes of an unfinished asynchronous copy
  std::uint8_t sending : 4 = 0;             // source bytes of an unfinished bulk store
  bool strong_write = false;                // the last write was an atomic or a volatile store
  bool product = false;                     // source of a wgmma that may be unfinished
  bool mbarrier = false;                    // part of an mbarrier object
};
inline constexpr std::uint16_t kSeveralReaders = 0xffff;
inline constexpr std::uint16_t kAsyncWriter = 0xfffe;   // a bulk copy
inline constexpr std::uint16_t kRemoteThread = 0x8000;  // any thread of another block of the cluster

// The state of an mbarrier object, stored outside the emulated shared memory.
struct MBarrier {
  std::uint32_t expected = 0, pending = 0;  // arrivals of the current phase
  std::uint32_t initialized = 0;            // time of the initialization
  std::size_t initializer = 0;              // column of Block::seen of the initializing warp or block
  std::int64_t bytes = 0;                   // expected bytes of asynchronous copies that are not complete
  std::uint64_t phase = 0;
  std::uint32_t arrived_warps = 0;      // in this phase
  std::vector<std::uint32_t> joined;    // what arrivals of this phase release: a row like those of Block::seen
  std::vector<std::uint32_t> released;  // what completed phases release to a successful wait
  std::uint16_t joined_blocks = 0, released_blocks = 0;  // masks of other blocks of the cluster that arrived
};

struct BarrierWaiter {
  std::uint32_t warp = 0, lanes = 0, pc = 0;
  bool waits = true;  // false for bar.arrive
};

struct BlockBarrier {
  std::uint32_t arrived = 0, expected = 0;  // expected 0: all live threads
  std::uint32_t true_count = 0;             // threads with a true predicate of bar.red
  std::uint32_t predicate_count = 0;
  std::vector<BarrierWaiter> waiters;
};

struct Block {
  LaunchState* launch = nullptr;
  std::uint64_t number = 0;  // linear in the grid
  Dim3 index;
  std::uint32_t rank = 0;  // in its cluster
  struct Cluster* cluster = nullptr;
  ByteOwner owner = kFirstCode;
  std::uint32_t threads = 0, live_threads = 0;
  std::vector<Warp> warps;
  std::vector<std::byte> shared;
  std::vector<SharedWord> shadow;
  Readings readings;
  std::array<BlockBarrier, 16> barriers;
  std::uint32_t now = 1;
  // The vector clocks of this block's shared memory: accesses of x up to time seen_at(v, x) happen before what v does
  // now. Rows v: the warps, then the blocks of the cluster by rank. Columns x: the warps, one for all bulk copies, the
  // blocks of the cluster. A cluster of one block has no rows and columns for blocks.
  std::vector<std::uint32_t> seen;
  std::size_t ranks = 0;  // blocks of the cluster; 0 for a cluster of one block
  std::size_t columns() const { return warps.size() + 1 + ranks; }
  std::size_t rows() const { return warps.size() + ranks; }
  std::size_t row_of_rank(std::size_t of) const { return warps.size() + of; }
  std::size_t column_of_rank(std::size_t of) const { return warps.size() + 1 + of; }
  std::array<std::uint32_t, 16> remote_times{};   // time of each cluster block's last access to this block's memory
  std::array<std::uint32_t, 16> remote_fences{};  // time of each cluster block's last fence
  std::uint32_t& seen_at(std::size_t warp, std::size_t of) { return seen[warp * columns() + of]; }
  std::uint32_t seen_at(std::size_t warp, std::size_t of) const { return seen[warp * columns() + of]; }
  std::vector<std::uint32_t> fenced;                             // rows of `seen` at each warp's last fence.proxy.async
  std::map<std::uint32_t, MBarrier> mbarriers;                   // by offset in shared memory
  std::map<std::uint32_t, std::vector<std::uint32_t>> releases;  // by offset: what strong writes released, as rows
  bool did_fence = false, did_strong = false;  // fence and strong access of global memory, to synchronize with others
  bool did_release = false;                    // a strong access after a fence
  // Since the last round of its warps (see progress.h). changed: memory or a barrier changed. reads_global: it read
  // global memory. polls: it read by a volatile load or an atomic, as code that waits for other blocks does.
  bool changed = false, reads_global = false, polls = false;
  std::uint64_t executed = 0;  // instructions, without rounds that only wait
  std::uint64_t copied = 0;    // bytes of bulk copies
  bool stopped = false;
  Counters counters;

  bool synchronizes() const { return did_fence && did_strong; }
};

// The current series of rounds without a change of memory or barriers, and the state saved from one of them.
struct Quiet {
  std::uint64_t rounds = 0;
  std::uint64_t states = 0, state = 0;  // number of compared states, hash of the saved one
  std::uint64_t since_state = 0;        // instructions since the last comparison
  std::uint64_t instructions = 0;       // in this turn of the cluster
  std::uint64_t last_turn = 0;
  bool reads_global = false;  // since the state was saved
  bool polls = false;
};

// Blocks that run together: the blocks of a cluster, or a single block.
struct Cluster {
  std::vector<std::unique_ptr<Block>> blocks;
  struct Waiter {
    std::uint32_t block = 0, warp = 0, lanes = 0, pc = 0;
  };
  std::vector<Waiter> waiters;  // at barrier.cluster.wait
  std::uint32_t arrived = 0;    // threads, at barrier.cluster.arrive
  bool synchronized = false;    // its blocks have synchronized at a barrier or an mbarrier
  Quiet quiet;
  bool changed = false, polls = false;  // in any round; the scheduler of clusters resets `changed`
};

struct LaunchState {
  const Program* program = nullptr;
  const Launch* launch = nullptr;
  const Options* options = nullptr;
  const ModuleData* module = nullptr;
  MemoryData* memory = nullptr;
  ModuleVariables* variables = nullptr;
  std::vector<std::byte> parameters;
  Dim3 cluster_shape;
  std::atomic<bool> stop{false};
  // Consecutive turns in which clusters only polled memory, and their instructions.
  std::atomic<std::uint64_t> idle_turns{0}, idle_instructions{0};
  std::atomic<std::uint64_t> clusters_in_flight{0};
  std::vector<std::uint8_t> released = std::vector<std::uint8_t>(kStrongOwner);  // by block code: Block::did_release

  std::mutex findings_mutex;
  struct Place {
    std::uint32_t pc;
    FindingKind kind;
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  std::map<Place, std::pair<std::uint64_t, Finding>> findings;  // with the linear number of the first thread

  Region* find(std::uint64_t address) {
    if (address < kModuleWindow) return memory->find(address);
    const std::uint64_t number = (address - kModuleWindow) >> kRegionShift;
    return number < variables->regions.size() ? variables->regions[number].get() : nullptr;
  }
};

inline constexpr std::uint64_t kMaxThreads = 1024;  // per block
inline constexpr std::uint64_t kYieldsBeforeRelease = 64;

// The index of linear number `number` in a grid or block of this shape.
inline Dim3 position(std::uint64_t number, const Dim3& shape) {
  return {static_cast<std::uint32_t>(number % shape.x), static_cast<std::uint32_t>(number / shape.x % shape.y),
          static_cast<std::uint32_t>(number / shape.x / shape.y)};
}

// Records a finding of one lane at the warp's current instruction.
void report(Warp& warp, int lane, FindingKind kind, std::string message, std::uint64_t address = 0,
            std::string buffer = {});

// Whether an earlier thread in grid order has reported this finding at this instruction. If so, counts it once more, so
// the caller need not build the message.
bool reported_before(Warp& warp, int lane, FindingKind kind);

enum class ClusterOutcome : std::uint8_t { kEnded, kGoesOn, kPolls };

// Executes a cluster's warps until all have exited, until they only poll memory that another block may write, or for
// about `slice` warp instructions.
ClusterOutcome run_cluster(Cluster& cluster, std::uint64_t slice);

}  // namespace fusec::emulator
