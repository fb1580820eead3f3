// The prelude's parts that multiply by a warpgroup, which differ in no more than the types and how many columns there
// are: "multiply_warpgroup_bf16_128" has multiply_warpgroup_bf16(d, a, b) for float d[16][4]. wgmma names each register
// of the sums, so that no template can stand for all of them: their text is made here.
//
//   bf16 fp16                          a factor's lines run along the depth or, by a template's argument, across it
//   e4m3_e4m3 e4m3_e5m2 ... s8         along the depth
#pragma once

#include <string>
#include <vector>

namespace fusec {

struct WarpgroupProduct {
  std::string part, text;
};
std::vector<WarpgroupProduct> warpgroup_products();

}  // namespace fusec
