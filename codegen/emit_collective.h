// A collective in the host part: NCCL's call, on the stream, with the communicator of its group.
#pragma once

#include <functional>
#include <string>

#include "codegen/launch_plan.h"
#include "ir/graph.h"

namespace fusec {

struct CollectiveOperands {
  std::string from, to, communicator;                    // C expressions
  std::function<std::string(const IndexExpr& e)> sized;  // a size as a C expression of the model's symbols
};

// The call's lines, the last of them an `if` that is true where NCCL refused. NCCL gathers and scatters along the first
// dimension; along another one, every slice of the dimensions before it is a call of its own, enqueued as one group.
// Throws Error(kInput) for a dtype that NCCL does not know.
std::string collective_call(const Graph& graph, const LaunchStep& step, const CollectiveOperands& operands);

}  // namespace fusec
