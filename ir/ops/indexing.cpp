// Indexing: embedding, gather, scatter, sort, ...
#include "ir/ops/table.h"

namespace fusec::ops {

std::vector<OpDef> indexing_ops() {
  return {};
}

}  // namespace fusec::ops
