// A collective in the host part: NCCL's call, on the stream, with the communicator of its group.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/launch/launch_plan.h"
#include "ir/graph.h"

namespace fusec {

// A collective as NCCL is asked for it: `slices` calls of one function, enqueued as a group, whose operands and results
// lie `from_slice` and `to_slice` elements apart.
struct CollectiveCall {
  struct Constant {
    std::string_view name;  // "ncclFloat32"
    int number = 0;         // its value
  };
  std::string_view function;  // "ncclAllGather"
  IndexExpr slices = 1, count = 0, from_slice = 0, to_slice = 0;
  Constant dtype, reduction;  // where nothing is reduced: an empty name
  std::int64_t communicator = 0;
};

// What the ranks gather or scatter at a time: a slice for each place of the dimensions before `dim`, which may be
// negative. An all_reduce has one slice, of all elements.
struct CollectiveSlices {
  IndexExpr count = 1, operand_elements = 0, result_elements = 0;
};
CollectiveSlices collective_slices(std::string_view op, std::int64_t dim, const TensorType& operand,
                                   const TensorType& result);

// Throws Error(kInput) for a dtype that NCCL does not know.
CollectiveCall collective_of(const Graph& graph, const LaunchStep& step);

// The names of the groups that the model's collectives have, each once: M_libraries has a communicator for each.
std::vector<std::string> collective_groups(const Graph& graph);

struct CollectiveOperands {
  std::string from, to, communicators;                   // C expressions
  std::function<std::string(const IndexExpr& e)> sized;  // a size as a C expression of the model's symbols
};

// The call's lines, the last of them an `if` that is true where NCCL refused. NCCL gathers and scatters along the first
// dimension; along another one, every slice of the dimensions before it is a call of its own, enqueued as one group.
// Throws Error(kInput) for a dtype that NCCL does not know.
std::string collective_call(const Graph& graph, const LaunchStep& step, const CollectiveOperands& operands);

}  // namespace fusec
