#include "ir/ops/table.h"

namespace fusec::ops {

std::vector<OpDef> reduction_ops() {
  return {};
}

}  // namespace fusec::ops
