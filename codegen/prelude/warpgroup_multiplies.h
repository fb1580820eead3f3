// Generates the prelude parts that wrap wgmma. They differ only in types and column counts:
// "multiply_warpgroup_bf16_128" has multiply_warpgroup_bf16(d, a, b) for float d[16][4]. wgmma names each accumulator
// register, so one template cannot cover all of them.
//
//   bf16 fp16                          operand is K-major, or MN-major by a template argument
//   e4m3_e4m3 e4m3_e5m2 ... s8         operand is K-major
//
// Accumulators may also be named PTX registers, which the kernel declares; they are then no operands. The function
// takes Registers<first, count> instead: "multiply_warpgroup_bf16_128_registers_0" is the one for Registers<0, 64>.
// "clear_registers_64" has clear(Registers<0, 64>).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fusec {

// Prefix of the names of accumulator registers, before their number.
inline constexpr const char* kAccumulatorRegisters = "sum";

struct WarpgroupMultiply {
  std::string part;
  std::vector<std::string_view> needs = {};  // other parts
  std::size_t types = 0;                     // index into the table of types
  int columns = 0;                           // 0: clears named registers
  std::optional<int> first_register = {};    // for accumulators in named registers
  int cleared = 0;                           // how many it clears

  std::string text() const;  // built on each call: a file holds few of the parts
};
std::vector<WarpgroupMultiply> warpgroup_multiplies();

// All names that the texts define: "multiply_warpgroup_bf16", ...
std::vector<std::string> warpgroup_functions();

}  // namespace fusec
