// The graphs that the partitioner is measured on, at any size. Operands are float32[4,4], so that structure is all that
// costs. Those of custom ops carry their pattern kinds; the others are annotated from their formulas.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace fusec::bench {

struct Family {
  std::string_view name;
  Graph (*make)(std::uint32_t nodes);
};

// tower: residual blocks of matmul, bias, relu, add; chain: elementwise ops one after the other; layered: ten nodes
// wide, two operands each, kinds mixed, every value used, one join at the end; layered_ew: the same, elementwise only;
// layered_outs: loose values are graph outputs, most nodes have no post-dominator; skips: long skip connections as in a
// U-Net; wide: as layered_ew, a thousand nodes wide.
const std::vector<Family>& families();

}  // namespace fusec::bench
