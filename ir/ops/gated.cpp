#include "ir/ops/table.h"

namespace fusec::ops {

std::vector<OpDef> gated_ops() {
  return {};
}

}  // namespace fusec::ops
