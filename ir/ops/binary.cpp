#include "ir/ops/table.h"

namespace fusec::ops {

std::vector<OpDef> binary_ops() {
  return {};
}

}  // namespace fusec::ops
