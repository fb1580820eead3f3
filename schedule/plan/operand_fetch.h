// Predicts the time of a launch with how operands are fetched, which the roofline model leaves out: copied in tiles or
// loaded one element at a time, contiguous or strided.
#pragma once

namespace fusec {

class KernelPlanner;

// In seconds; 0 where the roofline needs no correction (pointwise, attention, skinny GEMM).
double seconds_of_form(const KernelPlanner& planner);

}  // namespace fusec
