#include "ir/ops/table.h"

namespace fusec::ops {

std::vector<OpDef> creation_ops() {
  return {};
}

}  // namespace fusec::ops
