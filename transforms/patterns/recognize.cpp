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

bool escapes(const PatternMatch& match, const Node& node) {
  return std::ranges::any_of(match.pattern->escaping,
                             [&](std::uint32_t name) { return match.values[name] == node.first_output; });
}

// The nodes of the match that the replacement makes unnecessary. A value that escapes stays, with the nodes it is made
// of, and may be part of further matches (all layers read one mask).
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

// Whether the term has a chain. Such a match depends on the order of nodes, which changes between rounds.
bool holds_chain(const PatternTerm& term) {
  return term.kind == PatternTerm::Kind::kChain || std::ranges::any_of(term.operands, holds_chain);
}

// The rewriting patterns, and what is kept of them between rounds.
struct Rewriting {
  Rewriting(const PatternList& all, std::size_t model_nodes, const Limits& given)
      : settled(all.size()), limits(given), nodes(model_nodes + kSmallModel) {
    for (const ListedPattern& listed : all)
      if (listed.becomes() == Becomes::kRewrite) patterns.push_back({listed});
  }
  struct Pattern {
    ListedPattern listed;
    std::optional<bool> may_settle = {};  // known once it had possible roots
    int replaced_in = -1;                 // the last round in which it replaced something
  };
  std::vector<Pattern> patterns;
  SettledRoots settled;

  // Counts the nodes that the replacement of one match added. A pattern whose replacement contains its own match would
  // let the model grow forever.
  void count_made(std::size_t pattern, std::size_t count, const std::string& file) {
    made += count;
    const auto times = static_cast<std::int64_t>(made / nodes);
    if (times < limits.pattern_growth || made <= nodes * static_cast<std::size_t>(limits.pattern_growth)) return;
    Error::Parts parts = beyond_limit(limits, &Limits::pattern_growth, times + 1);
    parts.file = file;
    parts.what = "pattern " + in_quotes(patterns[pattern].listed.name()) + ": " + parts.what;
    throw Error(ErrorKind::kInput, std::move(parts));
  }

 private:
  static constexpr std::size_t kSmallModel = 1000;  // added to the model's nodes, so that small models may grow
  Limits limits;
  std::size_t nodes, made = 0;
};

// The error for patterns that still match after as many rounds as are allowed, as two that undo each other do.
Error endless(const Rewriting& rewriting, const Limits& limits, int rounds, const std::string& file) {
  Error::Parts parts = beyond_limit(limits, &Limits::pattern_rounds, rounds);
  std::vector<std::string> names;
  for (const Rewriting::Pattern& each : rewriting.patterns)
    if (each.replaced_in == rounds - 1) names.emplace_back(each.listed.name());
  parts.file = file;
  parts.what = "patterns " + listed(names) + ": " + parts.what;
  return {ErrorKind::kInput, std::move(parts)};
}

// The searches of one pattern in one round.
class Round {
 public:
  Round(Graph& graph, const SearchedGraph& searched, NodeLooks& looks, Rewriting& rewriting, std::size_t number)
      : graph_(graph),
        rewriting_(rewriting),
        settled_(rewriting.settled),
        number_(number),
        may_settle_(*rewriting.patterns[number].may_settle),
        memory_(searched, looks, *rewriting.patterns[number].listed) {}

  // Matches and replaces at this root. Skips a match if an equal one could not be replaced.
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

// Tries all patterns on the whole graph once. The matches of a round share no nodes. Works in place; the caller then
// reorders the nodes and removes dead ones.
bool rewrite_round(CanonicalGraph& canonical, Rewriting& rewriting, int number) {
  Graph& graph = canonical.graph;
  const PatternRoots roots(graph);
  std::optional<SearchedGraph> searched;  // made when the first pattern has possible roots
  std::optional<NodeLooks> looks;
  bool changed = false;
  rewriting.settled.begin_round(graph.nodes.size());
  for (std::size_t p = 0; p < rewriting.patterns.size(); ++p) {
    count_step();
    Rewriting::Pattern& pattern = rewriting.patterns[p];
    const std::vector<NodeId> nodes = roots.of(pattern.listed);
    if (nodes.empty()) continue;
    if (!pattern.may_settle) pattern.may_settle = !holds_chain(pattern.listed->match);
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
      changed = true;
      pattern.replaced_in = number;
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
  // A round may build on an earlier one: attention contains a softmax.
  for (int round = 0;; ++round) {
    count_step();
    const std::size_t nodes = canonical.graph.nodes.size();
    const bool again = rewrite_round(canonical, rewriting, round);
    if (again && round == limits.pattern_rounds) throw endless(rewriting, limits, round + 1, canonical.graph.file);
    // A replacement that failed may have left nodes behind, which keep_nodes removes.
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
    if (each.replaced_in >= 0) names.emplace_back(each.listed.name());
  // New constants and identities may have appeared between the composite ops.
  if (!changed) return names;
  fold_constants(canonical);
  simplify_algebra(canonical);
  return names;
}

}  // namespace fusec
