// Collectives in numbers: what the launch plan says that NCCL, or whoever runs a module, is asked for.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fusec/collective.h"
#include "runtime/device_call.h"
#include "runtime/read_manifest.h"

namespace fusec {

// The calls of one step, which NCCL takes as a group: `addresses` are those of operand and result.
DeviceCall collective_in_numbers(const Graph& graph, const LaunchStep& step, const std::vector<std::int64_t>& symbols,
                                 std::span<const std::uint64_t> addresses);

// What a step of a module is, one for each slice. Those of one step are independent of each other.
std::vector<Collective> collectives_of(const ManifestCollective& collective, const std::vector<std::int64_t>& symbols,
                                       void* source, void* target);

// Throws Error(kInput) where the model has collectives and the caller cannot communicate.
void require_communication(const ManifestModel& model, const Communicate& communicate);

}  // namespace fusec
