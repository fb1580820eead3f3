#include "ir/ops/table.h"

namespace fusec::ops {

std::vector<OpDef> composite_ops() {
  return {};
}

}  // namespace fusec::ops
