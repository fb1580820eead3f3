#include "explanations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "ir/error.h"
#include "transforms/choose_layouts.h"
#include "transforms/explain_print.h"
#include "transforms/patterns/explain_patterns.h"

namespace fusec {
namespace {

bool is_in(const std::vector<std::string>& list, const std::string& name) {
  return std::ranges::find(list, name) != list.end();
}

// Replaces each name of the file that the graph no longer has by a node that computes its value.
std::vector<std::string> present(const PlannedModel& planned, std::vector<std::string> names) {
  for (std::string& wanted : names) {
    if (planned.graph.find_node(wanted) != kNone) continue;
    for (std::size_t n = 0; n < planned.report.stands_for.size(); ++n) {
      const auto& origins = planned.report.stands_for[n];
      if (std::find(origins.begin(), origins.end(), wanted) == origins.end()) continue;
      wanted = planned.graph.nodes[n].name;
      break;
    }
  }
  return names;
}

// The number of the group's kernels, and the values that they store for one another.
GroupKernels kernels_of(const PlannedModel& planned, const LaunchPlan& launch, GroupId group) {
  GroupKernels made;
  std::vector<ValueId> written;
  for (const LaunchStep& step : planned.plan.groups[group].prepared ? launch.prepare_steps : launch.steps) {
    if (step.group != group || step.kind == LaunchStep::Kind::kCopy) continue;
    ++made.kernels;
    for (const ValueId v : step.reads) {
      const ValueId named = planned.graph.find_value(planned.source_graph().value(v).name);
      if (named != kNone && std::ranges::find(written, v) != written.end() &&
          std::ranges::find(made.stored, named) == made.stored.end())
        made.stored.push_back(named);
    }
    written.insert(written.end(), step.writes.begin(), step.writes.end());
  }
  return made;
}

}  // namespace

Explanation explanation_of(const PlannedModel& planned, const LaunchPlan& launch, const PatternList& patterns,
                           const std::vector<std::string>& names) {
  std::vector<AbsentNode> absent;
  std::vector<std::string> computed;
  for (const std::string& node : names) {
    const bool folded = is_in(planned.report.folded, node);
    if (folded || is_in(planned.report.dropped, node))
      absent.push_back({node, folded});
    else
      computed.push_back(node);
  }
  const std::vector<std::string> now = present(planned, computed);
  const auto nodes = find_nodes(planned.graph, now);
  Explanation explanation = explain(planned.graph, planned.kinds, planned.plan, nodes);
  for (std::size_t i = 0; i < now.size(); ++i)
    if (now[i] != computed[i]) explanation.standing_in.emplace_back(computed[i], now[i]);
  explanation.absent = std::move(absent);
  explanation.patterns = pattern_sentences(planned.graph, planned.plan, patterns, nodes);
  if (planned.laid_out)
    for (std::string& sentence : layout_sentences(planned.graph, *planned.laid_out, nodes))
      explanation.patterns.push_back(std::move(sentence));
  if (nodes.size() == 1) {
    const GroupId group = planned.plan.group_of[nodes[0]];
    for (LedgerEntry& edge : ledger(planned.graph, planned.kinds, planned.plan))
      if (planned.plan.group_of[edge.from] == group || planned.plan.group_of[edge.to] == group)
        explanation.edges.push_back(std::move(edge));
  }
  if (!nodes.empty())
    split_by_kernels(explanation, planned.graph, kernels_of(planned, launch, planned.plan.group_of[nodes[0]]));
  return explanation;
}

void require_one_kernel(const PlannedModel& planned, const LaunchPlan& launch, const PatternList& patterns,
                        const std::vector<std::string>& names) {
  const Explanation explanation = explanation_of(planned, launch, patterns, names);
  if (explanation.one_kernel && explanation.absent.empty()) return;
  std::string why = explanation_text(planned.graph, planned.plan, explanation);
  while (why.ends_with('\n')) why.pop_back();
  throw Error(ErrorKind::kInput,
              Error::Parts{.file = planned.graph.file,
                           .what = fmt::format("not one kernel: {}\n{}", fmt::join(names, ", "), why)});
}

std::string explained(const PlannedModel& planned, const LaunchPlan& launch, const PatternList& patterns,
                      const std::vector<std::string>& names, bool json) {
  if (!names.empty()) {
    const Explanation explanation = explanation_of(planned, launch, patterns, names);
    return json ? explanation_json(planned.graph, planned.plan, explanation)
                : explanation_text(planned.graph, planned.plan, explanation);
  }
  std::vector<NodeId> nodes(planned.graph.nodes.size());
  std::iota(nodes.begin(), nodes.end(), NodeId{0});
  const std::vector<std::string> sentences = pattern_sentences(planned.graph, planned.plan, patterns, nodes);
  return json ? explain_all_json(planned.graph, planned.kinds, planned.plan, sentences)
              : explain_all_text(planned.graph, planned.kinds, planned.plan, sentences);
}

std::vector<std::string> idle_patterns(const PlannedModel& planned, const PipelineOptions& options) {
  std::vector<std::string> sentences;
  if (!options.plan_file.empty() || !options.plan_text.empty()) return sentences;
  for (const ListedPattern& pattern : options.patterns) {
    if (pattern.is_builtin()) continue;
    const bool did =
        is_in(planned.rewriting_patterns, pattern->name) ||
        std::ranges::find(planned.plan.claims, pattern->name, &PatternClaim::pattern) != planned.plan.claims.end();
    if (did) continue;
    const bool rewrites = pattern->becomes == Becomes::kRewrite;
    const bool left_out = is_in(planned.left_out.patterns, "all") ||
                          is_in(planned.left_out.passes, rewrites ? "recognize-patterns" : "claim-patterns");
    sentences.push_back(fmt::format("{}:{}: pattern {} changed nothing: {}", pattern->file, pattern->line,
                                    pattern->name,
                                    options.strategy != Strategy::kFull ? "patterns are tried under --strategy=full"
                                    : left_out ? "it was left out, as asked or since less time is predicted without"
                                               : "--explain=all says what was in its way"));
  }
  return sentences;
}

}  // namespace fusec
