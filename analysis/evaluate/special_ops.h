// Host implementations of ops without a formula (scans, sorts, scatters). The reference device uses them.
#pragma once

#include <span>
#include <vector>

#include "ir/attributes.h"
#include "ir/host_tensor.h"
#include "ir/op.h"

namespace fusec {

// Computes the results of one node. `results` come zeroed, with the final dtype and shape. Absent operands are null;
// numbers are 0-d tensors. A collective runs as a group of one device. Throws Error(kInput) for collectives of several
// devices and for external launchers.
void evaluate_special(const OpDef& op, const Attributes& attributes, std::span<const HostTensor* const> operands,
                      std::span<HostTensor> results);

}  // namespace fusec
