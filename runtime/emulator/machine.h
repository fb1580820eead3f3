// The state of a launch in progress: launch, cluster, block, warp, fragment of a warp.
//
// A warp's lanes are split into fragments that execute apart; a fragment that reaches the point where its branch's
// paths meet (a Join) waits there for the others and goes on with them as one.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/emulator/memory.h"
#include "runtime/emulator/module_data.h"
#include "runtime/emulator/products_in_flight.h"
#include "runtime/emulator/program.h"
#include "runtime/emulator/readings.h"
#include "runtime/emulator/undefined_values.h"

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
  std::uint32_t missing = 0;  // lanes still on their way
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

// The last wait of a warp for an mbarrier that was in vain; no home: it was not.
struct FailedWait {
  Block* home = nullptr;
  std::uint32_t offset = 0, pc = 0;
};

// A bulk store that a lane has issued. Its source may be written again behind wait_group.read, its target accessed
// behind wait_group.
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
  std::uint32_t exists = 0;  // lanes that are threads
  std::uint32_t live = 0;    // and have not exited
  std::uint32_t pc = 0;      // of the instruction being executed, for findings
  std::uint64_t executed = 0;
  std::vector<std::byte> registers;
  std::vector<std::byte> local;             // lane after lane
  std::vector<std::uint8_t> local_written;  // a byte each
  std::vector<Fragment> fragments;
  std::vector<Join> joins;
  std::vector<AsyncCopy> copies;
  std::array<std::uint32_t, kLanes> commits{};
  std::vector<BulkStore> bulk_stores;
  std::array<std::uint32_t, kLanes> bulk_commits{};
  // Rows of Block::seen: what the last fence makes strong writes release (empty: no fence yet), and what strong reads
  // have observed, for the next fence to acquire (empty: nothing).
  std::vector<std::uint32_t> releasable, observed;
  std::uint32_t carry = 0;  // the condition code register, a bit a lane
  std::uint64_t yields = 0;
  bool wants_yield = false;  // an instruction asks to let others run (nanosleep, a failed try_wait)
  FailedWait failed_wait;
  // What lane x did to the block's shared memory at times up to lane_seen[32 * l + x] is ordered before what lane l
  // does now: by bar.warp.sync for a part of the warp. Empty: there was none.
  std::vector<std::uint32_t> lane_seen;
  UndefinedValues undefined;
  ProductsInFlight products;
  std::uint32_t register_changes = 0;  // setmaxnreg, which all warps of a group execute
  std::uint32_t cluster_arrived = 0;   // lanes at barrier.cluster.arrive whose phase is not over
  bool cluster_released = false;       // an arrival of that phase was no relaxed one

  std::byte* lanes(Slot slot) { return registers.data() + slot; }
  const std::byte* source(Slot slot) const {
    return (slot & kConstantBit) != 0 ? program->constants.data() + (slot & ~kConstantBit) : registers.data() + slot;
  }
};

// Four bytes of shared memory. Times are counted in Block::now, which every synchronization advances.
struct SharedWord {
  std::uint32_t write_time = 0;
  Reading reading;                          // since the last write; more of them in Block::readings
  std::uint16_t writer = 0;                 // a thread; kAsyncWriter, kRemoteThread + rank
  std::uint8_t allocated = 0, written = 0;  // a bit a byte
  std::uint8_t written_bytes = 0;           // by `writer`
  std::uint8_t pending : 4 = 0;             // target of an asynchronous copy under way
  std::uint8_t sending : 4 = 0;             // source of a bulk store under way
  bool strong_write = false;                // by an atomic or a volatile store
  bool product = false;                     // source of a wgmma, which is perhaps under way
  bool mbarrier = false;                    // part of an mbarrier object
};
inline constexpr std::uint16_t kSeveralReaders = 0xffff;
inline constexpr std::uint16_t kAsyncWriter = 0xfffe;   // a bulk copy, which no thread carries out
inline constexpr std::uint16_t kRemoteThread = 0x8000;  // any thread of another block of the cluster

// An mbarrier object, kept beside the shared memory it lies in.
struct MBarrier {
  std::uint32_t expected = 0, pending = 0;  // arrivals of the current phase
  std::uint32_t initialized = 0;            // when, and
  std::size_t initializer = 0;              // by whom: a column of Block::seen
  std::int64_t bytes = 0;                   // expected of asynchronous copies and not yet complete
  std::uint64_t phase = 0;
  std::uint32_t arrived_warps = 0;                       // in this phase
  std::vector<std::uint32_t> joined;                     // what the arrivals had seen, as a row of Block::seen
  std::vector<std::uint32_t> released;                   // the same, of completed phases: what a successful wait gives
  std::uint16_t joined_blocks = 0, released_blocks = 0;  // other blocks of the cluster that arrived, likewise
};

struct BarrierWaiter {
  std::uint32_t warp = 0, lanes = 0, pc = 0;
  bool waits = true;  // not bar.arrive
};

struct BlockBarrier {
  std::uint32_t arrived = 0, expected = 0;  // expected 0: all live threads
  std::uint32_t true_count = 0;             // of bar.red's predicate
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
  // What x did to this block's shared memory at times up to seen_at(v, x) is ordered before what v does to it now. Rows
  // are the warps, then the blocks of the cluster by rank, each as a whole; columns the warps, one for bulk copies, the
  // blocks of the cluster. A cluster of one block has no such rows and columns.
  std::vector<std::uint32_t> seen;
  std::size_t ranks = 0;  // blocks of the cluster, where there are several
  std::size_t columns() const { return warps.size() + 1 + ranks; }
  std::size_t rows() const { return warps.size() + ranks; }
  std::size_t row_of_rank(std::size_t of) const { return warps.size() + of; }
  std::size_t column_of_rank(std::size_t of) const { return warps.size() + 1 + of; }
  std::array<std::uint32_t, 16> remote_times{};   // when each block of the cluster last accessed this one's memory
  std::array<std::uint32_t, 16> remote_fences{};  // and fenced
  std::uint32_t& seen_at(std::size_t warp, std::size_t of) { return seen[warp * columns() + of]; }
  std::uint32_t seen_at(std::size_t warp, std::size_t of) const { return seen[warp * columns() + of]; }
  std::vector<std::uint32_t> fenced;  // a copy of `seen` rows as they were at each warp's last fence.proxy.async
  std::map<std::uint32_t, MBarrier> mbarriers;                   // by offset in shared memory
  std::map<std::uint32_t, std::vector<std::uint32_t>> releases;  // what strong writes released, by offset; rows of seen
  bool did_fence = false, did_strong = false;  // of global memory: the block synchronizes with others by itself
  bool did_release = false;                    // a strong access behind a fence
  // Since the last round of its warps (see progress.h): did memory or a barrier change, was global memory read, and by
  // a volatile load or an atomic, as those do who wait for other blocks?
  bool changed = false, reads_global = false, polls = false;
  std::uint64_t executed = 0;  // but for rounds of mere waiting
  std::uint64_t copied = 0;    // bytes, by bulk copies
  bool stopped = false;
  Counters counters;

  bool synchronizes() const { return did_fence && did_strong; }
};

// The rounds in which nothing changed, and the state saved from one of them.
struct Quiet {
  std::uint64_t rounds = 0;
  std::uint64_t states = 0, state = 0;  // how many were compared, and the one that was saved
  std::uint64_t since_state = 0;        // instructions
  std::uint64_t instructions = 0;       // of this turn
  std::uint64_t last_turn = 0;
  bool reads_global = false;  // since the state was saved
  bool polls = false;
};

// Blocks that run together: a cluster, or one block.
struct Cluster {
  std::vector<std::unique_ptr<Block>> blocks;
  struct Waiter {
    std::uint32_t block = 0, warp = 0, lanes = 0, pc = 0;
  };
  std::vector<Waiter> waiters;  // at barrier.cluster.wait
  std::uint32_t arrived = 0;    // threads, at barrier.cluster.arrive
  bool synchronized = false;    // its blocks have met at a barrier or an mbarrier
  Quiet quiet;
  bool changed = false, polls = false;  // in any round; the scheduler of clusters takes `changed` back
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
  // Turns of clusters, and their instructions, in which all merely polled memory, one after the other.
  std::atomic<std::uint64_t> idle_turns{0}, idle_instructions{0};
  std::atomic<std::uint64_t> clusters_in_flight{0};
  std::vector<std::uint8_t> released = std::vector<std::uint8_t>(kStrongOwner);  // by block code: Block::did_release

  std::mutex findings_mutex;
  struct Place {
    std::uint32_t pc;
    FindingKind kind;
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  std::map<Place, std::pair<std::uint64_t, Finding>> findings;  // with the linear thread, for the first one

  Region* find(std::uint64_t address) {
    if (address < kModuleWindow) return memory->find(address);
    const std::uint64_t number = (address - kModuleWindow) >> kRegionShift;
    return number < variables->regions.size() ? variables->regions[number].get() : nullptr;
  }
};

inline constexpr std::uint64_t kMaxThreads = 1024;  // of a block
inline constexpr std::uint64_t kYieldsBeforeRelease = 64;

// The index of a linear number in a grid or block of that shape.
inline Dim3 position(std::uint64_t number, const Dim3& shape) {
  return {static_cast<std::uint32_t>(number % shape.x), static_cast<std::uint32_t>(number / shape.x % shape.y),
          static_cast<std::uint32_t>(number / shape.x / shape.y)};
}

// Records a finding of one lane at the warp's current instruction.
void report(Warp& warp, int lane, FindingKind kind, std::string message, std::uint64_t address = 0,
            std::string buffer = {});

// Counts a finding once more where a thread before this one has shown it at this place already: then true, and the
// words need not be found again.
bool reported_before(Warp& warp, int lane, FindingKind kind);

enum class ClusterOutcome : std::uint8_t { kEnded, kGoesOn, kPolls };

// Executes a cluster's warps until all have exited, they do nothing but poll memory for what another block may write,
// or about `slice` warp instructions have passed.
ClusterOutcome run_cluster(Cluster& cluster, std::uint64_t slice);

}  // namespace fusec::emulator
