// Emits a collective in the host part: an NCCL call on the stream, with the communicator of its group.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/launch/launch_plan.h"
#include "ir/graph.h"

namespace fusec {

// One collective as NCCL calls: `slices` calls of one function, enqueued as a group. Consecutive operands are
// `from_slice` elements apart, consecutive results `to_slice` elements.
struct CollectiveCall {
  struct Constant {
    std::string_view name;  // "ncclFloat32"
    int number = 0;         // its value in nccl.h
  };
  std::string_view function;  // "ncclAllGather"
  IndexExpr slices = 1, count = 0, from_slice = 0, to_slice = 0;
  Constant dtype, reduction;  // reduction: empty name if nothing is reduced
  std::int64_t communicator = 0;
};

// The slices that ranks gather or scatter: one per index of the dimensions before `dim`, which may be negative. An
// all_reduce has one slice with all elements.
struct CollectiveSlices {
  IndexExpr count = 1, operand_elements = 0, result_elements = 0;
};
CollectiveSlices collective_slices(std::string_view op, std::int64_t dim, const TensorType& operand,
                                   const TensorType& result);

// Throws Error(kInput) for a dtype that NCCL does not know.
CollectiveCall collective_of(const Graph& graph, const LaunchStep& step);

// The distinct group names of the model's collectives. M_libraries has a communicator for each.
std::vector<std::string> collective_groups(const Graph& graph);

struct CollectiveOperands {
  std::string from, to, communicators;                   // C expressions
  std::function<std::string(const IndexExpr& e)> sized;  // a size as a C expression of the model's symbols
};

// The lines of the call; the last is an `if` that is true if NCCL failed. NCCL gathers and scatters along the first
// dimension only. For another dimension, each slice of the dimensions before it is a separate call in one NCCL group.
// Throws Error(kInput) for a dtype that NCCL does not know.
std::string collective_call(const Graph& graph, const LaunchStep& step, const CollectiveOperands& operands);

}  // namespace fusec
