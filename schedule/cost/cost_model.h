// How long a kernel takes on a target, predicted from what it has to do (schedule/cost/work.h): a roofline.
//
//   time = launch + max(memory, compute)
//
//   memory    bytes over bandwidth; where too few threads run to keep enough loads on the way, over what they can have
//             on the way in one latency; where rows are read or stored across memory, those of the sectors that are
//             asked for, at twice its rate
//   compute   operations over the rate of their unit, the slowest unit deciding (warps keep them busy side by side); of
//             the busiest multiprocessor, that is in whole waves of blocks
//
// Registers limit how many threads are there at a time, and what does not fit into them goes to memory and back. What
// the model does not know: caches between kernels and between blocks (each tensor comes from memory once), bank
// conflicts, other strided accesses, and how near to its unit's peak a schedule comes. It is for comparing groupings of
// one model; times of a device want measuring.
#pragma once

#include <cstdint>
#include <string_view>

#include "analysis/kernel/kernel.h"
#include "schedule/cost/work.h"
#include "schedule/kernel_forms.h"
#include "schedule/target/target.h"

namespace fusec {

enum class Roof : std::uint8_t { kLaunch, kMemory, kCompute };
std::string_view name(Roof roof);  // "launch", "memory", "compute"

// Seconds; of several kernels their sums.
struct Prediction {
  double launch = 0, memory = 0, compute = 0;
  double total = 0;  // launch + max(memory, compute) of each kernel
  double flops = 0, read = 0, written = 0;
  std::uint32_t launches = 0;

  // The largest part, which decides.
  Roof roof() const;
  // T_compute + T_memory + T_launch: nothing overlaps.
  double additive() const { return launch + memory + compute; }
  Prediction& operator+=(const Prediction& other);
};

Prediction predict(const Work& work, const Target& target);

// Both in one launch, in blocks of their own: they fill one another's last waves, and take no longer than one after the
// other.
Work horizontally_fused(const Work& a, const Work& b, const Target& target);

// Are all that it stores tensors without elements?
bool stores_nothing(const Graph& graph, const Kernel& kernel);

// Microseconds of one kernel whose form is known.
double predicted_us(const Graph& graph, const Kernel& kernel, const FormOfKernel& form, const Target& target);

}  // namespace fusec
