#include "runtime/occupancy.h"

#include <algorithm>

namespace fusec {
namespace {

constexpr std::int64_t kPartitions = 4, kRegisterUnit = 256, kSharedUnit = 128, kSystemShared = 1024;

std::int64_t rounded_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

std::int64_t most_blocks(int compute_capability) {
  switch (compute_capability) {
    case 86:
    case 87:
      return 16;
    case 89:
    case 120:
    case 121:
      return 24;
    default:
      return 32;
  }
}

}  // namespace

std::string_view name(Occupancy::Limit limit) {
  switch (limit) {
    case Occupancy::Limit::kThreads:
      return "threads";
    case Occupancy::Limit::kBlocks:
      return "blocks";
    case Occupancy::Limit::kRegisters:
      return "registers";
    case Occupancy::Limit::kShared:
      return "shared memory";
  }
  return "";
}

Occupancy occupancy(const Target& target, int threads, int registers, std::int64_t shared_bytes) {
  const std::int64_t warps = std::max<std::int64_t>(1, (threads + kWarpLanes - 1) / kWarpLanes);
  const std::int64_t all_warps = target.max_threads_per_multiprocessor / kWarpLanes;
  Occupancy result;
  std::int64_t blocks = all_warps / warps;
  const auto at_most = [&](std::int64_t count, Occupancy::Limit limit) {
    if (count >= blocks) return;
    blocks = count;
    result.limit = limit;
  };
  at_most(most_blocks(target.compute_capability), Occupancy::Limit::kBlocks);
  if (registers > 0) {
    const std::int64_t of_warp = rounded_up(registers * kWarpLanes, kRegisterUnit);
    const std::int64_t held = target.registers_per_multiprocessor / kPartitions / of_warp * kPartitions;
    at_most(held / warps, Occupancy::Limit::kRegisters);
  }
  const std::int64_t shared = rounded_up(shared_bytes + kSystemShared, kSharedUnit);
  at_most((target.shared_bytes_per_block + kSystemShared) / shared, Occupancy::Limit::kShared);
  result.blocks = static_cast<int>(blocks);
  result.fraction = static_cast<double>(blocks * warps) / static_cast<double>(all_warps);
  return result;
}

}  // namespace fusec
