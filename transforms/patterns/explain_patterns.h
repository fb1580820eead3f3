// What patterns did, and nearly did, to nodes: for --explain.
#pragma once

#include <string>
#include <vector>

#include "ir/fusion_plan.h"
#include "transforms/patterns/pattern_list.h"

namespace fusec {

// One sentence each: the claims that hold one of the nodes, and the patterns that came near at one of them.
//
//   fusec.swiglu claimed "act", "h" (alpha = 1.702)
//   fusec.swiglu does not match at "h": "act" is read by "probe" as well
std::vector<std::string> pattern_sentences(const Graph& graph, const FusionPlan& plan, const PatternList& patterns,
                                           const std::vector<NodeId>& nodes);

}  // namespace fusec
