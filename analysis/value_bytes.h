// Sizes of values in memory, with symbols at their hints; each type's is worked out once.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace fusec {

class ValueBytes {
 public:
  explicit ValueBytes(const Graph& graph) : graph_(graph), known_(graph.type_count(), -1) {}
  std::int64_t of(ValueId v);  // numbers and dimensions, which no memory holds, have none

 private:
  const Graph& graph_;
  std::vector<std::int64_t> known_;
};

}  // namespace fusec
