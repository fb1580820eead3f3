// Collectives with concrete sizes, as calls of NCCL or of Communicate.
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

// The calls of one collective step of a module, one for each slice; they are independent of each other.
std::vector<Collective> collectives_of(const ManifestCollective& collective, const std::vector<std::int64_t>& symbols,
                                       void* source, void* target);

// Throws Error(kInput) where the model has collectives and the caller cannot communicate.
void require_communication(const ManifestModel& model, const Communicate& communicate);

}  // namespace fusec
