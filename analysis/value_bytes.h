// Sizes of values in bytes, with symbols at their hints. Computes the size of each type once.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace fusec {

class ValueBytes {
 public:
  explicit ValueBytes(const Graph& graph) : graph_(graph), known_(graph.type_count(), -1) {}
  std::int64_t of(ValueId v);  // bytes; 0 for numbers and dimensions, which are not in memory

 private:
  const Graph& graph_;
  std::vector<std::int64_t> known_;
};

}  // namespace fusec
