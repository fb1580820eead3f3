// Which of a step's kernels a launch takes where every symbol has its hint.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/launch/launch_plan.h"

namespace fusec {

std::vector<std::int64_t> hints_of(const Symbols& symbols);

// The special form that such a launch takes; null where it takes the general one.
const LaunchStep::Specialization* form_at_hints(const LaunchStep& step, const std::vector<std::int64_t>& hints);

// In LaunchPlan::kernels; kNone where nothing is launched, or no kernel.
std::uint32_t kernel_at_hints(const LaunchStep& step, const std::vector<std::int64_t>& hints);

}  // namespace fusec
