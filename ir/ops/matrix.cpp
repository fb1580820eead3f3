// Matrix products, convolutions, attention.
#include "ir/ops/table.h"

namespace fusec::ops {

std::vector<OpDef> matrix_ops() {
  return {};
}

}  // namespace fusec::ops
