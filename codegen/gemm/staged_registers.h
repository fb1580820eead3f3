// A warp's sums in PTX registers by name, on their way to shared memory part by part, as the prelude's stage_part takes
// those that are variables: 16 rows of so many eights of columns, a lane's four sums of an eight in two rows.
//
//   if (part < 1) {                             registers have no index: the part is found by halves
//     asm volatile("st.shared.v2.f32 [%0+0], {sum0, sum1}; ..." : : "r"(to) : "memory");
//   } else { ...
#pragma once

#include <string>
#include <vector>

#include "codegen/expr/kernel_writer.h"

namespace fusec {

struct StagedRegisters {
  std::string name;  // of a register, before its number
  bool integers = false;
  std::vector<int> firsts;  // of each sum, the number of its first register
  int eights = 4;           // of columns, of a part
  bool halves = true;       // staged_place's kHalves
  int apart = 0;            // from a sum to the next, in elements
  int parts = 1;
  // Where the lane's sums of the first eight lie; of the second one, where that has a place of its own in some lines.
  std::string to, second = {};
};

// Eights of columns whose second one is before the first in some lines.
inline bool swaps_n8_tiles(int eights, bool halves) {
  return eights == 2 && !halves;
}

void stage_registers(const StagedRegisters& staged, const std::string& part, KernelWriter& writer);

}  // namespace fusec
