#include "runtime/emulator/emulator.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <deque>

#include "ir/budget.h"
#include "ir/error.h"
#include "ir/threads.h"
#include "runtime/emulator/decode.h"
#include "runtime/emulator/lanes.h"
#include "runtime/emulator/machine.h"
#include "runtime/emulator/progress.h"
#include "runtime/emulator/ptx_target.h"

namespace fusec::emulator {
namespace {

// Warp instructions in a cluster's turn. The oldest cluster has long turns, so that it soon ends or exceeds its budget.
constexpr std::uint64_t kClusterSlice = 1u << 18, kOldestSlice = 1u << 25;
constexpr std::size_t kMaxSuspended = 256;  // waiting clusters per host thread
// The launch ends when all blocks only poll memory for kIdleTurns turns each and max_instructions / kIdleShare
// instructions in all.
constexpr std::uint64_t kIdleTurns = 4, kIdleShare = 8;
constexpr std::uint64_t kMaxModuleBytes = std::uint64_t{1} << 32;  // for all variables of a module

std::uint64_t linear(const Dim3& at, const Dim3& shape) {
  return at.x + std::uint64_t{shape.x} * (at.y + std::uint64_t{shape.y} * at.z);
}

// ---- setting up

struct SpecialValues {
  const Block& block;
  const Warp& warp;

  std::uint32_t value(Special special, int lane) const {
    const LaunchState& state = *block.launch;
    const Launch& launch = *state.launch;
    const Dim3 thread = position(std::uint64_t{warp.number} * kLanes + static_cast<std::uint64_t>(lane), launch.block);
    const Dim3& shape = state.cluster_shape;
    const std::uint32_t bit = 1u << lane;
    switch (special) {
      case Special::kTidX:
        return thread.x;
      case Special::kTidY:
        return thread.y;
      case Special::kTidZ:
        return thread.z;
      case Special::kNtidX:
        return launch.block.x;
      case Special::kNtidY:
        return launch.block.y;
      case Special::kNtidZ:
        return launch.block.z;
      case Special::kCtaidX:
        return block.index.x;
      case Special::kCtaidY:
        return block.index.y;
      case Special::kCtaidZ:
        return block.index.z;
      case Special::kNctaidX:
        return launch.grid.x;
      case Special::kNctaidY:
        return launch.grid.y;
      case Special::kNctaidZ:
        return launch.grid.z;
      case Special::kLaneId:
        return static_cast<std::uint32_t>(lane);
      case Special::kWarpId:
        return warp.number;
      case Special::kNwarpId:
        return 32;
      case Special::kSmId:
        return static_cast<std::uint32_t>(block.number % 108);
      case Special::kNsmId:
        return 108;
      case Special::kGridId:
        return 1;
      case Special::kLanemaskEq:
        return bit;
      case Special::kLanemaskLe:
        return bit | (bit - 1);
      case Special::kLanemaskLt:
        return bit - 1;
      case Special::kLanemaskGe:
        return ~(bit - 1);
      case Special::kLanemaskGt:
        return ~(bit | (bit - 1));
      case Special::kClusterIdX:
        return block.index.x / shape.x;
      case Special::kClusterIdY:
        return block.index.y / shape.y;
      case Special::kClusterIdZ:
        return block.index.z / shape.z;
      case Special::kNclusterIdX:
        return launch.grid.x / shape.x;
      case Special::kNclusterIdY:
        return launch.grid.y / shape.y;
      case Special::kNclusterIdZ:
        return launch.grid.z / shape.z;
      case Special::kClusterCtaidX:
        return block.index.x % shape.x;
      case Special::kClusterCtaidY:
        return block.index.y % shape.y;
      case Special::kClusterCtaidZ:
        return block.index.z % shape.z;
      case Special::kClusterNctaidX:
        return shape.x;
      case Special::kClusterNctaidY:
        return shape.y;
      case Special::kClusterNctaidZ:
        return shape.z;
      case Special::kClusterCtarank:
        return block.rank;
      case Special::kClusterNctarank:
        return static_cast<std::uint32_t>(shape.count());
      case Special::kTotalShared:
        return static_cast<std::uint32_t>(state.program->declared_shared_bytes) + launch.dynamic_shared_bytes;
      case Special::kDynamicShared:
        return launch.dynamic_shared_bytes;
      case Special::kZero:
        return 0;
    }
    return 0;
  }
};

void start_warp(Block& block, Warp& warp, std::uint32_t number) {
  const Program& program = *block.launch->program;
  warp = Warp{};
  warp.block = &block;
  warp.program = &program;
  warp.number = number;
  const std::uint32_t left = block.threads - number * kLanes;
  warp.exists = warp.live = left >= kLanes ? kAllLanes : (1u << left) - 1;
  warp.registers.assign(program.register_bytes, std::byte{0});
  warp.local.assign(program.local_bytes * kLanes, std::byte{0});
  warp.local_written.assign(program.local_bytes * kLanes, 0);
  warp.fragments.push_back({.lanes = warp.live});
  const SpecialValues values{block, warp};
  for (const auto& [special, slot] : program.specials) {
    for (int lane = 0; lane < kLanes; ++lane) store_raw(warp, slot, 4, lane, values.value(special, lane));
  }
}

void mark_allocated(Block& block, std::uint64_t offset, std::uint64_t bytes) {
  for (std::uint64_t at = offset; at < offset + bytes; ++at) {
    block.shadow[at / 4].allocated |= static_cast<std::uint8_t>(1u << (at % 4));
  }
}

std::unique_ptr<Block> start_block(LaunchState& state, Cluster& cluster, const Dim3& index, std::uint32_t rank) {
  const Program& program = *state.program;
  auto block = std::make_unique<Block>();
  block->launch = &state;
  block->cluster = &cluster;
  block->index = index;
  block->number = linear(index, state.launch->grid);
  block->rank = rank;
  block->owner = static_cast<ByteOwner>(kFirstCode + block->number % (kMany - kFirstCode));
  block->threads = block->live_threads = static_cast<std::uint32_t>(state.launch->block.count());
  const std::uint64_t bytes = program.dynamic_shared_offset + state.launch->dynamic_shared_bytes;
  block->shared.assign((bytes + 15) / 16 * 16, std::byte{0});
  block->shadow.assign(block->shared.size() / 4, SharedWord{});
  for (const Placed& variable : program.shared) mark_allocated(*block, variable.offset, variable.bytes);
  mark_allocated(*block, program.dynamic_shared_offset, state.launch->dynamic_shared_bytes);
  const std::uint32_t warps = (block->threads + kLanes - 1) / kLanes;
  block->warps.resize(warps);
  const std::uint64_t ranks = state.cluster_shape.count();
  if (ranks > 1) block->ranks = ranks;
  block->seen.assign(block->rows() * block->columns(), 0);
  block->fenced = block->seen;
  for (std::uint32_t w = 0; w < warps; ++w) start_warp(*block, block->warps[w], w);
  block->counters.blocks = 1;
  block->counters.warps = warps;
  return block;
}

std::unique_ptr<Cluster> start_cluster(LaunchState& state, std::uint64_t number) {
  auto cluster = std::make_unique<Cluster>();
  const Dim3& shape = state.cluster_shape;
  const Dim3& grid = state.launch->grid;
  const Dim3 at = position(number, {grid.x / shape.x, grid.y / shape.y, grid.z / shape.z});
  for (std::uint32_t rank = 0; rank < shape.count(); ++rank) {
    const Dim3 inside = position(rank, shape);
    const Dim3 index{at.x * shape.x + inside.x, at.y * shape.y + inside.y, at.z * shape.z + inside.z};
    cluster->blocks.push_back(start_block(state, *cluster, index, rank));
  }
  return cluster;
}

// ---- checks of the launch itself

void launch_finding(LaunchState& state, std::string message) {
  Finding finding{.kind = FindingKind::kLaunch, .message = std::move(message), .kernel = state.program->kernel};
  state.findings.emplace(LaunchState::Place{static_cast<std::uint32_t>(state.findings.size()), FindingKind::kLaunch},
                         std::pair{std::uint64_t{0}, std::move(finding)});
}

// Returns false if the launch cannot be executed.
bool check_launch(LaunchState& state) {
  const Program& program = *state.program;
  const Launch& launch = *state.launch;
  const std::uint64_t threads = launch.block.count();
  const auto array = [](const std::array<std::uint32_t, 3>& size) { return Dim3{size[0], size[1], size[2]}; };
  bool good = true;
  const auto bad = [&](std::string message) {
    launch_finding(state, std::move(message));
    good = false;
  };
  if (threads == 0 || threads > kMaxThreads || launch.block.z > 64) {
    bad(fmt::format("a block of {} x {} x {} threads; 1 to {} are possible", launch.block.x, launch.block.y,
                    launch.block.z, kMaxThreads));
  }
  if (launch.grid.count() == 0 || launch.grid.x > 0x7fffffffu || launch.grid.y > 65535 || launch.grid.z > 65535) {
    bad(fmt::format("a grid of {} x {} x {} blocks is not possible", launch.grid.x, launch.grid.y, launch.grid.z));
  }
  if (program.required_threads[0] != 0 && !(array(program.required_threads) == launch.block)) {
    bad("the block is not of the shape that the kernel requires (.reqntid)");
  }
  if (program.max_threads[0] != 0 && threads > array(program.max_threads).count()) {
    bad(fmt::format("{} threads in a block; the kernel allows {} (.maxntid)", threads,
                    array(program.max_threads).count()));
  }
  const PtxTarget target = parse_ptx_target(state.module->ptx.target, state.module->ptx.version);
  const std::uint64_t shared = program.declared_shared_bytes + launch.dynamic_shared_bytes;
  const std::uint64_t most_shared = std::min(state.options->max_shared_bytes, max_shared_bytes(target));
  if (shared > most_shared) bad(fmt::format("{} bytes of shared memory; the target has {}", shared, most_shared));
  if (program.declared_shared_bytes > kMaxStaticShared) {
    bad(fmt::format("{} bytes of static shared memory; a kernel can declare {}", program.declared_shared_bytes,
                    kMaxStaticShared));
  }
  if (program.parameter_bytes > max_parameter_bytes(target)) {
    bad(fmt::format("{} bytes of parameters; {} are possible", program.parameter_bytes, max_parameter_bytes(target)));
  }
  const Dim3& shape = state.cluster_shape;
  if (shape.count() == 0 || shape.count() > 16 || launch.grid.x % shape.x != 0 || launch.grid.y % shape.y != 0 ||
      launch.grid.z % shape.z != 0) {
    bad("the grid is no multiple of the cluster, or the cluster has more than 16 blocks");
  }
  if (shape.count() > 1 && target.capability != 0 && target.capability < 90) {
    bad(fmt::format("a cluster of {} blocks; .target {} has none", shape.count(), state.module->ptx.target));
  }
  if (launch.arguments.size() != program.parameters.size()) {
    bad(fmt::format("{} arguments for {} parameters", launch.arguments.size(), program.parameters.size()));
    return false;
  }
  for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
    if (launch.arguments[i].size() != program.parameters[i].bytes) {
      bad(fmt::format("argument {} has {} bytes, the parameter {}", i, launch.arguments[i].size(),
                      program.parameters[i].bytes));
    }
  }
  return good;
}

void fill_parameters(LaunchState& state) {
  state.parameters.resize(state.program->parameter_bytes);
  for (std::size_t i = 0; i < state.launch->arguments.size(); ++i) {
    const Argument& argument = state.launch->arguments[i];
    if (!argument.empty()) {
      std::memcpy(&state.parameters[state.program->parameters[i].offset], argument.data(), argument.size());
    }
  }
}

// ---- host threads

// The clusters of a sample, in order, spread over the grid and including the first and last; empty: run all.
std::vector<std::uint64_t> chosen_clusters(std::uint64_t count, std::uint64_t sample) {
  std::vector<std::uint64_t> chosen;
  if (sample == 0 || sample >= count) return chosen;
  for (std::uint64_t i = 0; i < sample; ++i) {
    chosen.push_back(sample == 1 ? 0 : i * (count - 1) / (sample - 1));
  }
  return chosen;
}

class Workers {
 public:
  explicit Workers(LaunchState& state) : state_(state) {
    const Dim3& shape = state.cluster_shape;
    clusters_ = state.launch->grid.count() / shape.count();
    const auto multiple = [](std::uint64_t n, std::uint64_t of) { return (n + of - 1) / of * of; };
    const std::uint64_t sample = state.options->sample_blocks;
    sample_ = chosen_clusters(clusters_, multiple(multiple(sample, shape.count()) / shape.count(),
                                                  std::max<std::uint64_t>(1, state.launch->resident_blocks)));
    if (!sample_.empty()) clusters_ = sample_.size();
  }

  bool sampled() const { return !sample_.empty(); }

  Counters run() {
    const int threads = static_cast<int>(
        std::min<std::uint64_t>(static_cast<std::uint64_t>(std::max(1, state_.options->threads)), clusters_));
    std::vector<Counters> counters(static_cast<std::size_t>(threads));
    std::vector<std::exception_ptr> errors(static_cast<std::size_t>(threads));
    in_threads(counters.size(), [&](std::size_t i) { work(counters[i], errors[i]); });
    for (const std::exception_ptr& error : errors) {
      if (error) std::rethrow_exception(error);
    }
    Counters total;
    for (const Counters& part : counters) total += part;
    return total;
  }

 private:
  void work(Counters& counters, std::exception_ptr& error) {
    try {
      std::deque<std::unique_ptr<Cluster>> suspended;
      while (!state_.stop.load(std::memory_order_relaxed)) {
        std::unique_ptr<Cluster> cluster = take(suspended);
        if (cluster == nullptr) break;
        if (run_turn(*cluster, suspended) == ClusterOutcome::kEnded) {
          for (const std::unique_ptr<Block>& block : cluster->blocks) counters += block->counters;
          --state_.clusters_in_flight;
        } else {
          suspended.push_back(std::move(cluster));
        }
      }
    } catch (...) {
      error = std::current_exception();
      state_.stop = true;
    }
  }

  // Runs a cluster for a turn; a cluster that makes progress without polling runs to its end.
  ClusterOutcome run_turn(Cluster& cluster, const std::deque<std::unique_ptr<Cluster>>& suspended) {
    const std::uint64_t number = cluster.blocks.front()->number;
    const bool oldest = std::none_of(suspended.begin(), suspended.end(),
                                     [number](const auto& other) { return other->blocks.front()->number < number; });
    const std::uint64_t slice = oldest ? kOldestSlice : kClusterSlice;
    bool changed = false;
    std::vector<Counters> before;
    for (const std::unique_ptr<Block>& block : cluster.blocks) before.push_back(block->counters);
    ClusterOutcome outcome = ClusterOutcome::kGoesOn;
    do {
      cluster.changed = false;
      outcome = run_cluster(cluster, slice);
      changed = changed || cluster.changed;
    } while (outcome == ClusterOutcome::kGoesOn && cluster.changed && !cluster.polls);
    if (outcome == ClusterOutcome::kPolls && !changed) {
      // Do not count failed polls, since their number depends on the scheduling.
      for (std::size_t i = 0; i < before.size(); ++i) cluster.blocks[i]->counters = before[i];
      count_idle(cluster);
    } else {
      state_.idle_turns = state_.idle_instructions = 0;
    }
    return outcome;
  }

  // Counts a turn that only polled. Ends the launch once no cluster has changed anything for long enough.
  void count_idle(Cluster& cluster) {
    state_.idle_instructions += cluster.quiet.last_turn;
    const std::uint64_t turns = ++state_.idle_turns;
    if (turns <= kIdleTurns * state_.clusters_in_flight ||
        state_.idle_instructions <= state_.options->max_instructions / kIdleShare) {
      return;
    }
    for (const std::unique_ptr<Block>& block : cluster.blocks) {
      if (block->live_threads == 0 || block->stopped) continue;
      report_runaway(*block, sampled() ? "waits for blocks that the sample leaves out (--sample-blocks): run them all"
                                       : "all blocks that are left poll memory that nobody changes any more");
      return;
    }
  }

  // Takes a new cluster before a suspended one, which may wait for blocks that have not started.
  std::unique_ptr<Cluster> take(std::deque<std::unique_ptr<Cluster>>& suspended) {
    if (suspended.size() < kMaxSuspended) {
      const std::uint64_t number = next_.fetch_add(1);
      if (number < clusters_) {
        ++state_.clusters_in_flight;
        state_.idle_turns = state_.idle_instructions = 0;
        return start_cluster(state_, sample_.empty() ? number : sample_[number]);
      }
    }
    if (suspended.empty()) return nullptr;
    std::unique_ptr<Cluster> cluster = std::move(suspended.front());
    suspended.pop_front();
    return cluster;
  }

  LaunchState& state_;
  std::uint64_t clusters_ = 0;
  std::vector<std::uint64_t> sample_;
  std::atomic<std::uint64_t> next_{0};
};

void count_distinct(const std::vector<std::unique_ptr<Region>>& regions, Counters& counters) {
  for (const std::unique_ptr<Region>& region : regions) {
    if (!region->touched) continue;
    std::uint64_t read = 0;
    for (std::uint8_t touched : region->sectors_read) read += touched;
    counters.distinct_sectors_read += read;
    if (region->bytes < kSmallBuffer) counters.distinct_small_sectors_read += read;
    for (std::uint8_t touched : region->sectors_written) counters.distinct_sectors_written += touched;
  }
}

}  // namespace

// ---- modules

ModuleData::ModuleData(PtxModule parsed) : ptx(std::move(parsed)) {
  std::uint64_t globals = 0, total = 0;
  for (const PtxVariable& variable : ptx.variables) {
    total += variable.bytes;
    if (total > kMaxModuleBytes) throw Error(ErrorKind::kInput, {.file = ptx.file, .what = "too large variables"});
    std::uint64_t offset = 0, number = 0;
    if (variable.space == Space::kConst) {
      const auto alignment = static_cast<std::uint64_t>(variable.alignment);
      offset = (constant_bytes + alignment - 1) / alignment * alignment;
      constants.push_back({variable.name, offset, variable.bytes});
      constant_bytes = offset + variable.bytes;
    } else if (variable.space == Space::kGlobal) {
      number = globals++;
    }
    constant_offsets.push_back(offset);
    global_numbers.push_back(number);
  }
  if (constant_bytes > (1u << 24)) {
    throw Error(ErrorKind::kInput, {.file = ptx.file, .what = "too much constant memory"});
  }
}

std::shared_ptr<const Program> ModuleData::program(std::string_view kernel) {
  const std::lock_guard lock(mutex_);
  const auto found = programs_.find(kernel);
  if (found != programs_.end()) return found->second;
  auto made = std::make_shared<const Program>(decode_kernel(*this, kernel));
  programs_.emplace(std::string(kernel), made);
  return made;
}

Module::Module(std::string_view ptx, const std::string& file)
    : data_(std::make_shared<ModuleData>(parse_ptx(ptx, file))) {}

std::vector<std::string> Module::kernels() const {
  std::vector<std::string> names;
  for (const PtxFunction& function : data_->ptx.functions) {
    if (function.is_entry && function.has_body) names.push_back(function.name);
  }
  return names;
}

KernelInfo Module::kernel(std::string_view wanted) const {
  const std::shared_ptr<const Program> program = data_->program(wanted);
  KernelInfo info{.name = program->kernel,
                  .static_shared_bytes = program->declared_shared_bytes,
                  .local_bytes = program->local_bytes};
  for (const Placed& parameter : program->parameters) info.parameter_bytes.push_back(parameter.bytes);
  return info;
}

// ---- run

Report run(const Module& module, const Launch& launch, Memory& memory, const Options& options) {
  const std::shared_ptr<const Program> program = module.data()->program(launch.kernel);
  LaunchState state;
  state.program = program.get();
  state.launch = &launch;
  state.options = &options;
  state.module = module.data().get();
  state.memory = &memory.data();
  state.cluster_shape = launch.cluster;
  if (launch.cluster.count() == 0) {
    const std::array<std::uint32_t, 3>& required = program->required_cluster;
    state.cluster_shape = required[0] == 0 ? Dim3{} : Dim3{required[0], required[1], required[2]};
  }
  Report result;
  result.grid_blocks = launch.grid.count();
  if (check_launch(state)) {
    fill_parameters(state);
    state.variables = &memory.data().variables_of(module.data());
    memory.data().begin_launch(options.check_races && launch.grid.count() > 1, program->has_bulk_stores,
                               *state.variables);
    Workers workers(state);
    result.sampled = workers.sampled();
    result.counters = workers.run();
    count_distinct(memory.data().regions, result.counters);
    count_distinct(state.variables->regions, result.counters);
  }
  for (auto& [place, found] : state.findings) result.findings.push_back(std::move(found.second));
  std::stable_sort(result.findings.begin(), result.findings.end(),
                   [](const Finding& a, const Finding& b) { return a.ptx_line < b.ptx_line; });
  return result;
}

}  // namespace fusec::emulator
