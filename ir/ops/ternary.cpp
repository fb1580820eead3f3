#include "ir/ops/table.h"

namespace fusec::ops {

std::vector<OpDef> ternary_ops() {
  return {};
}

}  // namespace fusec::ops
