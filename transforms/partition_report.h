// The partition report (--emit=partition): which nodes share a kernel, in execution order, as JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/fusion_plan.h"
#include "transforms/origins.h"

namespace fusec {

// What the plan alone does not know; each may be left empty.
struct PartitionReportContext {
  std::string arch;
  // For each node of the graph, the file's nodes whose values it computes now; empty: the graph is the file's.
  Origins stands_for;
  std::vector<std::string> dropped, folded;  // nodes of the file that nothing computes
  // What code generation found: stream operations of each group (empty: one a group, none for views), of the whole
  // launch (copies of outputs included), and the distinct kernels.
  std::vector<std::uint32_t> group_launches;
  std::uint32_t launches = kNone;
  std::uint32_t kernels = kNone;
  // Bytes that a launch needs beside its arguments, with symbols at their hints; nothing where no code was generated.
  struct Memory {
    std::int64_t workspace = 0;
    std::int64_t least_workspace = 0;  // the largest set of values alive at once: no plan needs less
    std::int64_t prepared = 0;
  };
  std::optional<Memory> memory = std::nullopt;
};

std::string partition_report(const Graph& graph, const FusionPlan& plan, const PartitionReportContext& context);

// Bytes that kernels read from and write to global memory, with symbols at their hints: each value that a group takes
// or gives once. Groups of views move nothing, nor do those that are prepared when the model is launched.
struct GlobalBytes {
  std::int64_t read = 0, written = 0;
};
GlobalBytes global_bytes(const Graph& graph, const FusionPlan& plan, const std::vector<GroupInterface>& interfaces);
GlobalBytes unfused_global_bytes(const Graph& graph);

// Whether a group computes nothing: views, tuples and their items alone.
bool is_only_views(const Graph& graph, const FusionGroup& group);

}  // namespace fusec
