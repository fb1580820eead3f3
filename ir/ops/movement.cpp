// Movement of elements: reshape, permute, slice, concat, pad, ... and tuples.
#include "ir/ops/table.h"

namespace fusec::ops {

std::vector<OpDef> movement_ops() {
  return {};
}

}  // namespace fusec::ops
