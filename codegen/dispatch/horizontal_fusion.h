// Several kernels as one, each in blocks of its own (schedule/lowering/horizontal_fusion):
//
//   const int block = blockIdx.x;
//   if (block < 12) return part_0(block, p0, ...);
//   part_1(block - 12, p1, ...);
//
// Those that are several kernels, one after the other (rows whose blocks leave partial results), stand in as many
// launches, the first kernels of all in the first; their scratch memory is one piece:
//
//   if (block < 40) return part_0(block, x0, (float*)partials);
//   part_0(block - 40, x1, (float*)(partials + 640));
#pragma once

#include <span>
#include <string>
#include <vector>

#include "codegen/expr/kernel_source.h"

namespace fusec {

// One of the kernels, with the values behind its parameters. Parts that share a source share its function.
struct KernelOfPart {
  const KernelSource* source = nullptr;
  std::vector<KernelParameter> parameters;
};
using KernelPart = std::vector<KernelOfPart>;  // one after the other

// Whether a kernel can be such a part: nothing about its launch is out of the ordinary.
bool can_be_part(const KernelSource& source);

// As many as the longest part has; none where the parameters are more than a kernel takes.
std::vector<KernelSource> horizontally_fused(std::span<const KernelPart> parts, const std::string& name);

}  // namespace fusec
