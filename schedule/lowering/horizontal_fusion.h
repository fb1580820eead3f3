// Horizontal fusion: independent kernels of one group run in one launch, each in thread blocks of its own.
//
//   p0, m0, v0 -> p0', m0', v0'   float32[4096, 4096]  ┐
//   p1, m1, v1 -> p1', m1', v1'   float32[4096]        ├  one kernel: blocks 0 .. a - 1, a .. b - 1, b .. c - 1
//   p2, m2, v2 -> p2', m2', v2'   float32[11008, 4096] ┘
//
// Light kernels (pointwise, rows) share a launch up to a limit on code size (schedule/lowering/light_code_size).
// Products share a launch if they have the same form, read a common tensor, and fit together (projections to queries,
// keys and values of unequal widths). A light kernel that stores a part of the same value as a product joins it (a
// concat of a product and a copy). All other products run alone.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "schedule/kernel_forms.h"
#include "schedule/lowering/lower_group.h"
#include "schedule/target/target.h"

namespace fusec {

struct CrossRowUnits;

bool can_fuse_horizontally(KernelForm form);

// By unit: its form as lowering found it, else found here; null unless the unit is a kernel.
using FormsOfUnits = std::vector<std::shared_ptr<const FormOfKernel>>;
FormsOfUnits forms_of(const std::vector<LoweredUnit>& units);

// Returns the launches in an executable order: each is one unit, or several kernels in one launch. Alone stand units
// that launch nothing and, on this target, kernels of block clusters or of blocks that wait for one another. A kernel
// that takes several launches may share each of them. `folded` is the result of cross_row_units for these units.
std::vector<std::vector<std::uint32_t>> launches_of(const std::vector<LoweredUnit>& units, const FormsOfUnits& forms,
                                                    const std::vector<CrossRowUnits>& folded, const Graph& graph,
                                                    const Target& target);
// as_seen_in_shared_launch: the target without features that a kernel in a shared grid cannot use (clusters, warp
// specialization). target_of_launch: the target that the kernels of `launch` may use; a single kernel, and
// GEMMs that warpgroups compute together, have all features.
Target as_seen_in_shared_launch(Target target);
Target target_of_launch(const Graph& graph, const std::vector<LoweredUnit>& units, const FormsOfUnits& forms,
                        const std::vector<std::uint32_t>& launch, const Target& target);
// Returns the launches without a target: as if each kernel took one launch.
std::vector<std::vector<std::uint32_t>> launches_of(const std::vector<LoweredUnit>& units);

}  // namespace fusec
