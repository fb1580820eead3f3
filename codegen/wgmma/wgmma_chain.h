// Emits several K steps of one warpgroup GEMM as a single asm statement. The accumulators are then operands of one
// statement instead of one per step, which is most of the compile time of such a kernel.
//
//   asm volatile("{ ...
//       wgmma.mma_async...m64n64k16.f32.bf16.bf16 {%0,...,%31}, %32, %33, add, 1, 1, 0, 0;
//       wgmma.mma_async...m64n64k16.f32.bf16.bf16 {%0,...,%31}, %34, %35, add, 1, 1, 0, 0; }"
//       : "+f"(sum[0][0][0]), ... : "l"(query), "l"(keys), "l"(query + 2), "l"(keys + 2));
#pragma once

#include <string>
#include <vector>

#include "codegen/expr/kernel_writer.h"
#include "ir/dtype.h"

namespace fusec {

struct WgmmaChain {
  DType dtype = DType::kBFloat16;
  std::string accumulators;  // an array [groups of eight columns][4] of accumulators
  bool named = false;        // `accumulators` is the prefix of named PTX registers, which are no operands
  int first_n8_tile = 0;     // the first group of eight columns that the chain adds to
  int n8_tiles = 8;
  bool overwrites = false;    // the first step overwrites the accumulators
  bool right_across = false;  // the right operand is not K-major
  // The operands of a step. Left: a shared-memory descriptor, or an array of four registers. Right: a descriptor.
  struct Step {
    std::string left, right;
  };
  bool left_in_registers = false;
  std::vector<Step> steps;
};

void write_chain(const WgmmaChain& chain, KernelWriter& writer);

}  // namespace fusec
