// Prints several kernels as one kernel, each in its own range of blocks (schedule/lowering/horizontal_fusion):
//
//   const int block = blockIdx.x;
//   if (block < 12) return part_0(block, p0, ...);
//   part_1(block - 12, p1, ...);
//
// A part may consist of several sequential kernels, such as a row reduction with partial results. The result then has
// as many launches; launch i joins the i-th kernels of all parts. Their scratch memory is one allocation:
//
//   if (block < 40) return part_0(block, x0, (float*)partials);
//   part_0(block - 40, x1, (float*)(partials + 640));
#pragma once

#include <span>
#include <string>
#include <vector>

#include "codegen/expr/kernel_source.h"

namespace fusec {

// A kernel and the values bound to its parameters. Parts with the same source share one device function.
struct KernelOfPart {
  const KernelSource* source = nullptr;
  std::vector<KernelParameter> parameters;
};
using KernelPart = std::vector<KernelOfPart>;  // run one after the other

// True if a kernel can be a part: it needs no cluster, tensor map or other special launch.
bool can_be_part(const KernelSource& source);

// As many kernels as the longest part has. Empty if the combined parameter list is too long.
std::vector<KernelSource> horizontally_fused(std::span<const KernelPart> parts, const std::string& name);

}  // namespace fusec
