// Several kernels as one, each in blocks of its own (analysis/side_by_side):
//
//   const int block = blockIdx.x;
//   if (block < 12) return part_0(block, p0, ...);
//   part_1(block - 12, p1, ...);
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codegen/kernel_source.h"

namespace fusec {

// One of the kernels, with the values behind its parameters. Parts that share a source share its function.
struct KernelPart {
  const KernelSource* source = nullptr;
  std::vector<KernelParameter> parameters;
};

// Whether a kernel can be such a part: nothing about its launch is out of the ordinary.
bool can_be_part(const KernelSource& source);

// Nothing where the parameters are more than a kernel takes.
std::optional<KernelSource> side_by_side(std::span<const KernelPart> parts, const std::string& name);

}  // namespace fusec
