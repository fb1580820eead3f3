// Linear layers on quantized operands, grouped_matmul.
#include "ir/ops/table.h"

namespace fusec::ops {

std::vector<OpDef> quantized_ops() {
  return {};
}

}  // namespace fusec::ops
