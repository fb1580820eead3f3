// Collectives with concrete sizes, as calls of NCCL or of the caller's Communicate function.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fusec/collective.h"
#include "runtime/device_call.h"
#include "runtime/read_manifest.h"

namespace fusec {

// The NCCL calls of one launch step, as one group. `addresses` holds the addresses of operand and result.
DeviceCall collective_in_numbers(const Graph& graph, const LaunchStep& step, const std::vector<std::int64_t>& symbols,
                                 std::span<const std::uint64_t> addresses);

// The Communicate calls of one collective step, one per slice. The calls are independent of each other.
std::vector<Collective> collectives_of(const ManifestCollective& collective, const std::vector<std::int64_t>& symbols,
                                       void* source, void* target);

// Throws Error(kInput) if the model has collectives and `communicate` is empty.
void require_communication(const ManifestModel& model, const Communicate& communicate);

}  // namespace fusec
