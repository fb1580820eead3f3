// Writes and reads a fusion plan as a JSON file that a user can edit (--emit=plan, --plan=FILE):
//
//   { "fusec_plan": 1, "model": "swiglu_mlp", "strategy": "full", "max_fused_ops": 256, "max_args": null,
//     "groups": [ { "name": "linear", "nodes": ["gate"] },
//                 { "name": "fused_silu_mul", "nodes": ["act", "h"] } ] }
//
// Groups and nodes may be in any order. "model", "strategy", the limits and the names of groups are optional. A group
// may have "recomputed": its nodes that an earlier group computes, too. The rest of a FusionPlan is derived from these.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/fusion_plan.h"
#include "transforms/fuse.h"

namespace fusec {

// The passes and patterns that were disabled when the plan was made, on the command line or by --bisect
// ("disabled_passes" and "disabled_patterns" in the file). Compiling with the plan disables them again.
struct LeftOut {
  std::vector<std::string> passes, patterns;
};
// Reads these two lists from the text of a plan. Throws Error(kInput) if the text is not JSON or a list has another
// type.
LeftOut left_out_of(std::string_view text, const std::string& file);

std::string write_plan(const Graph& graph, const FusionPlan& plan, const LeftOut& left_out = {});

// Reads a plan for this graph; `options` give what the file leaves out. Throws Error(kInput) with the reason if the
// text is no plan, or no legal plan for this graph.
FusionPlan read_plan(std::string_view text, const std::string& file, const Graph& graph,
                     std::span<const OpPattern> kinds, const FuseOptions& options);

}  // namespace fusec
