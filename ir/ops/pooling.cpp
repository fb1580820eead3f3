// Pooling and resampling.
#include "ir/ops/table.h"

namespace fusec::ops {

std::vector<OpDef> pooling_ops() {
  return {};
}

}  // namespace fusec::ops
