// The report (--emit=report): what the cost model (schedule/cost/cost_model.h) predicts of each group and of the whole
// model, next to the same nodes as kernels of their own, as JSON; docs/schemas/report.schema.json has its form.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "ir/fusion_plan.h"
#include "schedule/cost/cost_model.h"
#include "transforms/partition_report.h"

namespace fusec {

class FormMemory;

// Of each group of the plan.
std::vector<Prediction> predict_groups(const Graph& graph, const FusionPlan& plan, const Target& target,
                                       const Numerics& numerics = {});

Prediction sum_of(const std::vector<Prediction>& parts);

// What sum_of(predict_groups(...)).total is, for which no operations are counted; where that is `enough` or more, no
// less than `enough`: whoever only compares need not know the rest.
double seconds_of_groups(const Graph& graph, const FusionPlan& plan, const Target& target, const Numerics& numerics,
                         double enough = std::numeric_limits<double>::infinity(), FormMemory* forms = nullptr);

struct CostReportContext {
  const PartitionReportContext& nodes;
  const Target& target;
  std::vector<Prediction> groups;     // of the plan
  std::vector<Prediction> unfused;    // beside each group: the file's nodes in it, each alone and with its first group
  std::vector<std::uint32_t> fused;   // by group, how many of the file's nodes it computes that would be launches alone
  std::vector<std::string> numerics;  // what was asked of arithmetic beyond the defaults
  // What belongs to no group: copies into the caller's buffers at the end of a launch; and unfused those, and the
  // file's nodes that are dropped, folded or prepared.
  Prediction at_end, unfused_elsewhere;
  std::vector<std::string> elsewhere;  // those nodes
  // Of the whole model under each strategy, as reported: "none", "tvm", "full".
  std::vector<std::pair<Strategy, Prediction>> totals;
};

// A group of several nodes gains, by prediction, the share of its unfused time over its own beyond 1; under this it
// stands in the report's `to_measure`.
inline constexpr double kSmallGain = 0.2;

std::string cost_report(const Graph& graph, const FusionPlan& plan, const CostReportContext& context);

}  // namespace fusec
