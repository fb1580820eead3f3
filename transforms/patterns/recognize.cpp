#include "transforms/patterns/recognize.h"

#include <algorithm>

#include "ir/budget.h"
#include "ir/error.h"
#include "ir/spelling.h"
#include "transforms/fold_constants.h"
#include "transforms/patterns/match.h"
#include "transforms/patterns/match_memory.h"
#include "transforms/patterns/pattern_roots.h"
#include "transforms/patterns/replacement.h"
#include "transforms/patterns/settled_roots.h"
#include "transforms/remove_dead.h"
#include "transforms/simplify_algebra.h"

namespace fusec {
namespace {

// What one round makes another may take further (attention holds a softmax); none of the patterns undoes another's
// work, so that few rounds are enough. Patterns that do would go on for ever.
constexpr int kMostPatternRounds = 12;

bool escapes(const PatternMatch& match, const Node& node) {
  return std::ranges::any_of(match.pattern->escaping,
                             [&](std::uint32_t name) { return match.values[name] == node.first_output; });
}

// The nodes of the match whose work nobody needs any more. What others read as well stays, and what that is made of: it
// may be part of further matches (all layers have one mask).
std::vector<NodeId> replaced_nodes(const SearchedGraph& searched, const PatternMatch& match) {
  std::vector<NodeId> replaced = {match.root};
  for (auto it = match.nodes.rbegin(); it != match.nodes.rend(); ++it) {
    count_step();
    const Node& node = searched.graph.nodes[*it];
    if (*it == match.root || escapes(match, node)) continue;
    bool needed = false;
    for (std::uint32_t o = 0; o < node.output_count; ++o)
      for (const NodeId reader : searched.uses.of(node.first_output + o))
        needed = needed || std::ranges::find(replaced, reader) != replaced.end();
    if (needed) replaced.push_back(*it);
  }
  return replaced;
}

// A chain's nodes may be read by what comes later: the order of the nodes, which changes, tells.
bool holds_chain(const PatternTerm& term) {
  return term.kind == PatternTerm::Kind::kChain || std::ranges::any_of(term.operands, holds_chain);
}

// The patterns that rewrite, with what is known of them from one round to the next.
struct Rewriting {
  Rewriting(const PatternList& all, std::size_t model_nodes, const Limits& given)
      : settled(all.size()), limits(given), nodes(model_nodes + kSmallModel) {
    for (const auto& pattern : all)
      if (pattern->becomes == Becomes::kRewrite)
        patterns.push_back({.pattern = pattern.get(), .may_settle = !holds_chain(pattern->match)});
  }
  struct Pattern {
    const FusionPattern* pattern;
    bool may_settle;
    bool replaced = false;  // something
  };
  std::vector<Pattern> patterns;
  SettledRoots settled;

  // Counts what the replacement of one match made. A pattern whose replacement holds what it matches, and more, would
  // let the model grow for ever.
  void count_made(std::size_t pattern, std::size_t count, const std::string& file) {
    made += count;
    const auto times = static_cast<std::int64_t>(made / nodes);
    if (times < limits.pattern_growth || made <= nodes * static_cast<std::size_t>(limits.pattern_growth)) return;
    Error::Parts parts = beyond_limit(limits, &Limits::pattern_growth, times + 1);
    parts.file = file;
    parts.what = "pattern " + in_quotes(patterns[pattern].pattern->name) + ": " + parts.what;
    throw Error(ErrorKind::kInput, std::move(parts));
  }

 private:
  static constexpr std::size_t kSmallModel = 1000;  // nodes that a small model may have more
  Limits limits;
  std::size_t nodes, made = 0;
};

// One pattern's searches of a round.
class Round {
 public:
  Round(Graph& graph, const SearchedGraph& searched, NodeLooks& looks, Rewriting& rewriting, std::size_t number)
      : graph_(graph),
        rewriting_(rewriting),
        settled_(rewriting.settled),
        number_(number),
        may_settle_(rewriting.patterns[number].may_settle),
        memory_(searched, looks, *rewriting.patterns[number].pattern) {}

  // What was matched and replaced at this root. Whether a match can be replaced is known where one like it could not.
  std::optional<PatternMatch> replaced_at(NodeId root) {
    if (may_settle_ && settled_.is_settled(number_, root)) return std::nullopt;
    RememberedMatch* remembered = memory_.find(root);
    if (remembered && remembered->accepted == false) return std::nullopt;
    std::optional<PatternMatch> match;
    if (!remembered)
      match = memory_.search(root, remembered);
    else if (remembered->matched())
      match = memory_.match(*remembered, root);
    if (!match) {
      if (may_settle_ && remembered) settled_.note(number_, root, remembered->reach(), remembered->far());
      return std::nullopt;
    }
    settled_.touch_operands(graph_, graph_.nodes[root]);
    const std::size_t nodes = graph_.nodes.size();
    const bool replaced = replace_match(graph_, *match).empty();
    rewriting_.count_made(number_, graph_.nodes.size() - nodes, graph_.file);
    if (remembered) remembered->accepted = replaced;
    if (!replaced) return std::nullopt;
    settled_.touch_operands(graph_, graph_.nodes[root]);
    return match;
  }

 private:
  Graph& graph_;
  Rewriting& rewriting_;
  SettledRoots& settled_;
  const std::size_t number_;
  const bool may_settle_;
  MatchMemory memory_;
};

// One search of the whole graph; matches of a round share no node. Works in place, on nodes that remove_dead brings
// into order afterwards.
bool rewrite_round(CanonicalGraph& canonical, Rewriting& rewriting) {
  Graph& graph = canonical.graph;
  const PatternRoots roots(graph);
  std::optional<SearchedGraph> searched;  // made when some pattern's ops are all there
  std::optional<NodeLooks> looks;
  bool changed = false;
  rewriting.settled.begin_round(graph.nodes.size());
  for (std::size_t p = 0; p < rewriting.patterns.size(); ++p) {
    count_step();
    const std::vector<NodeId> nodes = roots.of(*rewriting.patterns[p].pattern);
    if (nodes.empty()) continue;
    if (!searched) {
      searched.emplace(graph);
      looks.emplace(*searched);
      canonical.heirs.assign(graph.nodes.size(), kNone);
    }
    Round round(graph, *searched, *looks, rewriting, p);
    for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
      if (graph.nodes[*it].output_count != 1) continue;
      const std::optional<PatternMatch> match = round.replaced_at(*it);
      if (!match) continue;
      changed = rewriting.patterns[p].replaced = true;
      looks->forget(*it);
      for (const NodeId n : replaced_nodes(*searched, *match)) {
        searched->taken[n] = true;
        rewriting.settled.touch(n);
        if (n != match->root) canonical.heirs[n] = match->root;
      }
    }
  }
  return changed;
}

}  // namespace

std::vector<std::string> recognize_patterns(CanonicalGraph& canonical, const PatternList& patterns,
                                            const Limits& limits) {
  Rewriting rewriting(patterns, canonical.graph.nodes.size(), limits);
  bool changed = false;
  for (int round = 0; round < kMostPatternRounds; ++round) {
    count_step();
    const std::size_t nodes = canonical.graph.nodes.size();
    const bool again = rewrite_round(canonical, rewriting);
    // What was not to be replaced in the end may have left a part of its replacement.
    if (!again && canonical.graph.nodes.size() == nodes) break;
    changed = changed || again;
    canonical.heirs.resize(canonical.graph.nodes.size(), kNone);
    canonical.stands_for.resize(canonical.graph.nodes.size());
    const std::vector<NodeId> order = needed_nodes(canonical.graph);
    if (again) rewriting.settled.end_round(canonical.graph, order);
    keep_nodes(canonical, order);
    if (!again) break;
  }
  std::vector<std::string> names;
  for (const Rewriting::Pattern& each : rewriting.patterns)
    if (each.replaced) names.push_back(each.pattern->name);
  // What stands between composite ops now may be known, or nothing.
  if (!changed) return names;
  fold_constants(canonical);
  simplify_algebra(canonical);
  return names;
}

}  // namespace fusec
