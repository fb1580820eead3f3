#include "ir/ops/table.h"

namespace fusec::ops {

std::vector<OpDef> rotary_ops() {
  return {};
}

}  // namespace fusec::ops
