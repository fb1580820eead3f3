// Finds the kernel that a launch step runs if every symbol has the value of its hint.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/launch/launch_plan.h"

namespace fusec {

std::vector<std::int64_t> hints_of(const Symbols& symbols);

// The specialization that the step takes; null if it takes the general kernel.
const LaunchStep::Specialization* form_at_hints(const LaunchStep& step, const std::vector<std::int64_t>& hints);

// An index into LaunchPlan::kernels; kNone if the step launches no kernel.
std::uint32_t kernel_at_hints(const LaunchStep& step, const std::vector<std::int64_t>& hints);

}  // namespace fusec
