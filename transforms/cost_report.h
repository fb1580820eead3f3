// The JSON report of --emit=report: what the cost model (schedule/cost/cost_model.h) predicts for each group and for
// the whole model, compared with one kernel per node. Schema: docs/schemas/report.schema.json.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "ir/fusion_plan.h"
#include "schedule/cost/cost_model.h"
#include "transforms/partition_report.h"

namespace fusec {

class FormMemory;
struct LoweringMemory;

// By group of the plan.
std::vector<Prediction> predict_groups(const Graph& graph, const FusionPlan& plan, const Target& target,
                                       const Numerics& numerics = {});

Prediction sum_of(const std::vector<Prediction>& parts);

// sum_of(predict_groups(...)).total in seconds, without counting operations. Stops early once the sum is known to reach
// `enough`; the result is then at least `enough` but may be too small. `memory` is of this graph.
double seconds_of_groups(const Graph& graph, const FusionPlan& plan, const Target& target, const Numerics& numerics,
                         FormMemory& forms, LoweringMemory* memory = nullptr,
                         double enough = std::numeric_limits<double>::infinity());

struct CostReportContext {
  const PartitionReportContext& nodes;
  const Target& target;
  std::vector<Prediction> groups;     // by group of the plan
  std::vector<Prediction> unfused;    // by group: its file nodes as one kernel each (a node counts for its first group)
  std::vector<std::uint32_t> fused;   // by group: number of its file nodes that would be launches of their own
  std::vector<std::string> numerics;  // arithmetic options that differ from the defaults
  // `at_end`: copies into the caller's buffers at the end of a launch, which belong to no group. `unfused_elsewhere`:
  // these copies in the unfused model, and the file's nodes that are dropped, folded or prepared.
  Prediction at_end, unfused_elsewhere;
  std::vector<std::string> elsewhere;  // names of these nodes
  // The whole model under each strategy, in this order: "none", "tvm", "full".
  std::vector<std::pair<Strategy, Prediction>> totals;
};

// The report lists a group of several nodes under `to_measure` if its predicted unfused time is less than
// (1 + kSmallGain) times its fused time.
inline constexpr double kSmallGain = 0.2;

std::string cost_report(const Graph& graph, const FusionPlan& plan, const CostReportContext& context);

}  // namespace fusec
