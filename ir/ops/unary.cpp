#include "ir/ops/table.h"

namespace fusec::ops {

std::vector<OpDef> unary_ops() {
  return {};
}

}  // namespace fusec::ops
