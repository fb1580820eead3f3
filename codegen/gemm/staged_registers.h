// Stages a warp's accumulators from named PTX registers in shared memory, part by part, like stage_part of the prelude
// does for variables. A part has 16 rows of some groups of eight columns; a lane has four accumulators of a group, in
// two rows.
//
//   if (part < 1) {                             registers cannot be indexed: binary search for the part
//     asm volatile("st.shared.v2.f32 [%0+0], {sum0, sum1}; ..." : : "r"(to) : "memory");
//   } else { ...
#pragma once

#include <string>
#include <vector>

#include "codegen/expr/kernel_writer.h"

namespace fusec {

struct StagedRegisters {
  std::string name;  // prefix of the register names
  bool integers = false;
  std::vector<int> first_registers;  // first register of each accumulator
  int n8_tiles = 4;                  // groups of eight columns per part
  bool halves = true;                // kHalves of the prelude's staged_place
  int distance = 0;                  // elements from one accumulator to the next
  int parts = 1;
  // Addresses of the lane's accumulators in the first group of eight; in the second group, if its layout differs in
  // some lines.
  std::string to, second = {};
};

// True if the second group of eight columns comes before the first in some lines.
inline bool swaps_n8_tiles(int n8_tiles, bool halves) {
  return n8_tiles == 2 && !halves;
}

void stage_registers(const StagedRegisters& staged, const std::string& part, KernelWriter& writer);

}  // namespace fusec
