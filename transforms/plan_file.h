// The fusion plan as a file that can be edited and given back (--emit=plan, --plan=FILE):
//
//   { "fusec_plan": 1, "model": "swiglu_mlp", "strategy": "full", "max_fused_ops": 256, "max_args": null,
//     "groups": [ { "name": "linear", "nodes": ["gate"] },
//                 { "name": "fused_silu_mul", "nodes": ["act", "h"] } ] }
//
// Groups and nodes may stand in any order; "model", "strategy", the limits and the names of groups may be left out. A
// group may have "recomputed": those of its nodes that an earlier group computes as well. The rest of a plan follows.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/fusion_plan.h"
#include "transforms/fuse.h"

namespace fusec {

// What was left out of the rewriting before the plan was made ("disabled_passes", "disabled_patterns"; of the command
// line, of --bisect): to give such a plan back is to leave it out again.
struct LeftOut {
  std::vector<std::string> passes, patterns;
};
// Throws Error(kInput) where the text is no JSON object with such lists.
LeftOut left_out_of(std::string_view text, const std::string& file);

std::string write_plan(const Graph& graph, const FusionPlan& plan, const LeftOut& left_out = {});

// Reads a plan for this graph; what it leaves open comes from `options`. Throws Error(kInput) that says why the text is
// no plan, or no legal plan for this graph.
FusionPlan read_plan(std::string_view text, const std::string& file, const Graph& graph,
                     std::span<const OpPattern> kinds, const FuseOptions& options);

}  // namespace fusec
