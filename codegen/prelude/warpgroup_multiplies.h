// The prelude's parts that multiply by a warpgroup, which differ in no more than the types and how many columns there
// are: "multiply_warpgroup_bf16_128" has multiply_warpgroup_bf16(d, a, b) for float d[16][4]. wgmma names each register
// of the sums, so that no template can stand for all of them: their text is made here.
//
//   bf16 fp16                          a factor's lines run along the depth or, by a template's argument, across it
//   e4m3_e4m3 e4m3_e5m2 ... s8         along the depth
//
// Sums that are PTX registers by name, which the kernel declares, are no operands: the same function has
// Registers<first, count> in their place, "multiply_warpgroup_bf16_128_registers_0" the one for Registers<0, 64>.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fusec {

// What such registers are called before their number.
inline constexpr const char* kAccumulatorRegisters = "sum";

struct WarpgroupMultiply {
  std::string part;
  std::vector<std::string_view> needs = {};  // other parts
  std::size_t types = 0;                     // which of the types above
  int columns = 0;
  std::optional<int> first_register = {};  // of sums by name

  std::string text() const;  // made anew each time: few files hold more than one of a hundred
};
std::vector<WarpgroupMultiply> warpgroup_multiplies();

// "multiply_warpgroup_bf16", ...: all names that the texts define.
std::vector<std::string> warpgroup_functions();

}  // namespace fusec
