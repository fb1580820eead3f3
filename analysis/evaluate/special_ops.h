// Ops that no formula describes (scans, sorts, scatters), on tensors in host memory. What the reference device does for
// them.
#pragma once

#include <span>
#include <vector>

#include "ir/attributes.h"
#include "ir/host_tensor.h"
#include "ir/op.h"

namespace fusec {

// The results of one node, each already of its dtype and shape (`results` come in zeroed). Operands that are absent are
// null; numbers are 0-d tensors. Collectives are those of a group of one. Throws Error(kInput) for ops that the host
// cannot do (collectives of several devices, external launchers).
void evaluate_special(const OpDef& op, const Attributes& attributes, std::span<const HostTensor* const> operands,
                      std::span<HostTensor> results);

}  // namespace fusec
