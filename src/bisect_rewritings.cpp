#include "bisect_rewritings.h"

#include <set>

#include "passes.h"

namespace fusec {
namespace {

// For each node of the graph: its op, and the file's nodes that it stands for.
std::set<std::vector<std::string>> origins_of(const PlannedModel& planned) {
  std::set<std::vector<std::string>> origins;
  const Origins& stands_for = planned.report.stands_for;
  for (NodeId n = 0; n < planned.graph.nodes.size(); ++n) {
    std::vector<std::string> names{std::string(planned.graph.nodes[n].op->name)};
    if (stands_for.empty()) names.push_back(planned.graph.nodes[n].name);
    if (!stands_for.empty())
      for (const std::string_view name : stands_for[n]) names.emplace_back(name);
    origins.insert(std::move(names));
  }
  return origins;
}

}  // namespace

std::vector<Rewriting> rewritings_of(const PipelineOptions& options) {
  std::vector<Rewriting> rewritings;
  if (options.strategy != Strategy::kFull) return rewritings;
  for (const Pass& pass : passes()) {
    // Claims are fusions, not rewritings.
    const bool rewrites = pass.part == CompilationPart::kGraph && pass.under_full_alone && !pass.needed;
    if (!rewrites || pass.name == "claim-patterns") continue;
    if (pass.name != "recognize-patterns") {
      rewritings.push_back({std::string(pass.name)});
      continue;
    }
    for (const ListedPattern& pattern : options.patterns)
      if (pattern.becomes() == Becomes::kRewrite) rewritings.push_back({std::string(pattern.name()), true});
  }
  return rewritings;
}

LeftOut without_last(const std::vector<Rewriting>& rewritings, std::size_t kept) {
  LeftOut left_out;
  for (std::size_t i = kept; i < rewritings.size(); ++i)
    (rewritings[i].is_pattern ? left_out.patterns : left_out.passes).push_back(rewritings[i].name);
  return left_out;
}

RewritingFound find_culprit(const std::vector<Rewriting>& rewritings,
                            const std::function<bool(const LeftOut&)>& passes) {
  RewritingFound found;
  const auto test = [&](std::size_t kept) {
    ++found.tests;
    return passes(without_last(rewritings, kept));
  };
  found.fails_with_none = rewritings.empty() || !test(0);
  if (found.fails_with_none) return found;
  std::size_t good = 0, bad = rewritings.size();  // passes with the first `good`, fails with the first `bad`
  while (bad - good > 1) {
    const std::size_t middle = good + (bad - good) / 2;
    (test(middle) ? good : bad) = middle;
  }
  found.culprit = good;
  return found;
}

std::vector<std::vector<std::string>> made_by(const PlannedModel& with, const PlannedModel& without) {
  const auto before = origins_of(without);
  std::vector<std::vector<std::string>> made;
  for (const std::vector<std::string>& origins : origins_of(with))
    if (!before.contains(origins)) made.emplace_back(origins.begin() + 1, origins.end());
  return made;
}

}  // namespace fusec
