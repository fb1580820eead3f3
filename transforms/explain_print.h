// Explanations and the ledger as text for people and as JSON for machines.
#pragma once

#include <string>

#include "transforms/explain.h"

namespace fusec {

std::string explanation_text(const Graph& graph, const FusionPlan& plan, const Explanation& explanation);
std::string explanation_json(const Graph& graph, const FusionPlan& plan, const Explanation& explanation);

// --explain=all: every group with how it came about, then every edge that was not fused; last the sentences
// of patterns/explain_patterns.
std::string explain_all_text(const Graph& graph, std::span<const OpPattern> kinds, const FusionPlan& plan,
                             const std::vector<std::string>& patterns = {});
std::string explain_all_json(const Graph& graph, std::span<const OpPattern> kinds, const FusionPlan& plan,
                             const std::vector<std::string>& patterns = {});

// --emit=ledger: { "fusec_ledger": 1, "model": ..., "edges": [ { from, to, phase, rule, blocker, bytes_saved,
// would_allow } ] }
std::string ledger_json(const Graph& graph, std::span<const OpPattern> kinds, const FusionPlan& plan);

}  // namespace fusec
