// Kernels of one group that need nothing of one another run side by side in one launch, each in blocks of its own:
//
//   p0, m0, v0 -> p0', m0', v0'   float32[4096, 4096]  ┐
//   p1, m1, v1 -> p1', m1', v1'   float32[4096]        ├  one kernel: blocks 0 .. a - 1, a .. b - 1, b .. c - 1
//   p2, m2, v2 -> p2', m2', v2'   float32[11008, 4096] ┘
//
// Light ones do (pointwise, rows), as many as are not too much code (schedule/lowering/light_code_size), and products
// of one form that read a tensor in common, of which a device has room for all (the projections to queries, keys and
// values of unequal widths). Other products want a device to themselves, but what stores parts of one value stays
// together (what a concat joins: a product, and a copy beside it).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "schedule/kernel_forms.h"
#include "schedule/lowering/lower_group.h"
#include "schedule/target/target.h"

namespace fusec {

bool can_fuse_horizontally(KernelForm form);

// By unit; null for what is no kernel. As lowering found them, or found now.
using FormsOfUnits = std::vector<std::shared_ptr<const FormOfKernel>>;
FormsOfUnits forms_of(const std::vector<LoweredUnit>& units);

// The units by launches, in an order that can be run: each is one unit, or several kernels side by side. A unit that
// launches nothing stands alone, and so do blocks in clusters, or such as wait for one another, on this target. What
// takes several launches has others beside it in each of them.
std::vector<std::vector<std::uint32_t>> launches_of(const std::vector<LoweredUnit>& units, const FormsOfUnits& forms,
                                                    const Graph& graph, const Target& target);
std::vector<std::vector<std::uint32_t>> launches_of(const std::vector<LoweredUnit>& units, const Graph& graph,
                                                    const Target& target);
// Parts of a launch share a grid and its blocks' registers: forms that are clusters of blocks, or warps of several
// kinds, stand alone. The target as they see it, and as kernels of one launch do, which may be warpgroups' together.
Target as_seen_in_shared_launch(Target target);
Target target_of_launch(const Graph& graph, const std::vector<LoweredUnit>& units, const FormsOfUnits& forms,
                        const std::vector<std::uint32_t>& launch, const Target& target);
// Whatever the target: as if each kernel were one launch.
std::vector<std::vector<std::uint32_t>> launches_of(const std::vector<LoweredUnit>& units);

}  // namespace fusec
