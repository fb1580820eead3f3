// The JSON report of --emit=partition: which nodes share a kernel, in execution order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/fusion_plan.h"
#include "transforms/origins.h"

namespace fusec {

// Facts for the report that the plan does not hold. Each may be left empty.
struct PartitionReportContext {
  std::string arch;
  // By node of the graph: the file's nodes whose values it computes. Empty: the graph is the file's.
  Origins stands_for;
  std::vector<std::string> dropped, folded;  // nodes of the file that no kernel computes
  // From code generation: launches of each group (empty: one a group, none for views), of the whole model (copies of
  // outputs included), and the number of distinct kernels.
  std::vector<std::uint32_t> group_launches;
  std::uint32_t launches = kNone;
  std::uint32_t kernels = kNone;
  // Bytes of device memory beside the arguments, with symbols at their hints; nothing if no code was generated.
  struct Memory {
    std::int64_t workspace = 0;
    std::int64_t least_workspace = 0;  // the largest set of values that are live at once: a lower bound
    std::int64_t prepared = 0;         // results of M_prepare
  };
  std::optional<Memory> memory = std::nullopt;
};

std::string partition_report(const Graph& graph, const FusionPlan& plan, const PartitionReportContext& context);

// Bytes that the kernels of one launch read from and write to global memory, with symbols at their hints. Each input
// and output of a group counts once. Groups of views and prepared groups count nothing.
struct GlobalBytes {
  std::int64_t read = 0, written = 0;
};
GlobalBytes global_bytes(const Graph& graph, const FusionPlan& plan, const std::vector<GroupInterface>& interfaces);
GlobalBytes unfused_global_bytes(const Graph& graph);

// Whether a group has only views, tuples and items of tuples, and so computes nothing.
bool is_only_views(const Graph& graph, const FusionGroup& group);

}  // namespace fusec
