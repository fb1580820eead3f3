// Collectives in numbers: what the launch plan says that NCCL is asked for.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/device_call.h"

namespace fusec {

// The calls of one step, which NCCL takes as a group: `addresses` are those of operand and result.
DeviceCall collective_in_numbers(const Graph& graph, const LaunchStep& step, const std::vector<std::int64_t>& symbols,
                                 std::span<const std::uint64_t> addresses);

}  // namespace fusec
