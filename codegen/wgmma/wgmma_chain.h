// Several steps of one product by a warpgroup as a single statement: the sums pass through one list of operands, not
// through one a step, which is most of what compilers do with a kernel of such products.
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
  std::string sums;     // an array of eights of columns, of each four sums
  bool named = false;   // ... or what PTX registers are called before their number, which no statement need pass on
  int first_eight = 0;  // of those that the chain adds to
  int eights = 8;
  bool fresh = false;         // the first step overwrites what is in the sums: they are no operands
  bool right_across = false;  // the right factor's lines run across the depth
  // A step's left factor: a descriptor of shared memory, or an array of four registers; and its right one.
  struct Step {
    std::string left, right;
  };
  bool left_in_registers = false;
  std::vector<Step> steps;
};

void write_chain(const WgmmaChain& chain, KernelWriter& writer);

}  // namespace fusec
