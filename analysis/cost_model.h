// How long a kernel takes on a target, predicted from what it has to do (analysis/work.h): a roofline.
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

#include <optional>
#include <string_view>
#include <vector>

#include "analysis/numerics.h"
#include "analysis/side_by_side.h"
#include "analysis/target.h"
#include "analysis/work.h"

namespace fusec {

enum class Roof : std::uint8_t { kLaunch, kMemory, kCompute };
std::string_view name(Roof roof);  // "launch", "memory", "compute"

// Seconds; of several kernels their sums.
struct FoldedUnits;

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
Work side_by_side(const Work& a, const Work& b, const Target& target);

// Of what one launch holds; nothing for views, and for what has no elements. `folded`: what is folded of all the units
// (analysis/column_folds.h), found once for their launches.
std::optional<Work> work_of_launch(const Graph& graph, const std::vector<LoweredUnit>& units, const FormsOfUnits& forms,
                                   const std::vector<std::uint32_t>& launch, const std::vector<FoldedUnits>& folded,
                                   const Target& target);

// Of lowered units, launch by launch; views are for nothing. Operations are not counted.
Prediction predict(const Graph& graph, const std::vector<LoweredUnit>& units, const FormsOfUnits& forms,
                   const std::vector<std::vector<std::uint32_t>>& launches, const Target& target);

// Of a group: `outputs` as in lower_group, what others need of these nodes' results. `together`: kernels that need
// nothing of one another are one launch (analysis/side_by_side.h), as under `full`.
Prediction predict(const Graph& graph, const std::vector<NodeId>& nodes, const std::vector<ValueId>& outputs,
                   bool together, const Target& target, const Numerics& numerics = {}, FormMemory* forms = nullptr);

// Microseconds of one kernel whose form is known.
double predicted_us(const Graph& graph, const Kernel& kernel, const FormOfKernel& form, const Target& target);

}  // namespace fusec
