// Collectives.
#include "ir/ops/table.h"

namespace fusec::ops {

std::vector<OpDef> communication_ops() {
  return {};
}

}  // namespace fusec::ops
