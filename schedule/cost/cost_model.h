// Predicts how long a kernel takes on a target from its work (schedule/cost/work.h): a roofline.
//
//   time = launch + max(memory, compute)
//
//   memory    bytes / bandwidth. With few threads the bandwidth is at most their bytes in flight / latency. For strided
//             rows the bytes are those of the touched sectors, at twice the memory rate (the cache serves repeats).
//   compute   operations / rate, for the slowest unit (warps keep the units busy side by side), times the whole waves
//             of blocks on the busiest multiprocessor.
//
// Registers limit the resident threads; values that do not fit spill to memory and back. Not modelled are caches
// between kernels and blocks (each tensor is read from memory once), bank conflicts, other strided accesses, and how
// close a schedule comes to its unit's peak. The model compares groupings of one model; measure to get a device's
// times.
#pragma once

#include <cstdint>
#include <string_view>

#include "analysis/kernel/kernel.h"
#include "ir/graph.h"
#include "schedule/cost/work.h"
#include "schedule/target/target.h"

namespace fusec {

enum class Roof : std::uint8_t { kLaunch, kMemory, kCompute };
std::string_view name(Roof roof);  // "launch", "memory", "compute"

// Times in seconds. For several kernels, the sums.
struct Prediction {
  double launch = 0, memory = 0, compute = 0;
  double total = 0;  // sum over kernels of launch + max(memory, compute)
  double flops = 0, read = 0, written = 0;
  std::uint32_t launches = 0;

  // Returns the largest part, which limits the kernel.
  Roof roof() const;
  // Returns the time without any overlap.
  double additive() const { return launch + memory + compute; }
  Prediction& operator+=(const Prediction& other);
};

Prediction predict(const Work& work, const Target& target);

// Returns the work of both kernels in one launch, in blocks of their own. They fill each other's last waves, and take
// no longer than one after the other.
Work horizontally_fused(const Work& a, const Work& b, const Target& target);

// Returns whether all outputs of the kernel are empty tensors.
bool stores_nothing(const Graph& graph, const Kernel& kernel);

}  // namespace fusec
