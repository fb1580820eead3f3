#include "transforms/patterns/recognize.h"

#include <algorithm>

#include "transforms/fold_constants.h"
#include "transforms/patterns/match.h"
#include "transforms/patterns/match_memory.h"
#include "transforms/patterns/pattern_roots.h"
#include "transforms/patterns/replacement.h"
#include "transforms/remove_dead.h"
#include "transforms/simplify_algebra.h"

namespace fusec {
namespace {

// What one round makes another may take further (attention holds a softmax); none of the patterns undoes another's
// work, so that few rounds are enough. Patterns that do would go on for ever.
constexpr int kMostRounds = 12;

bool escapes(const PatternMatch& match, const Node& node) {
  return std::ranges::any_of(match.pattern->escaping,
                             [&](std::uint32_t name) { return match.values[name] == node.first_output; });
}

// The nodes of the match whose work nobody needs any more. What others read as well stays, and what that is made of: it
// may be part of further matches (all layers have one mask).
std::vector<NodeId> replaced_nodes(const SearchedGraph& searched, const PatternMatch& match) {
  std::vector<NodeId> replaced = {match.root};
  for (auto it = match.nodes.rbegin(); it != match.nodes.rend(); ++it) {
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

// What was matched and replaced at this root. Whether a match can be replaced is known where one like it could not.
std::optional<PatternMatch> replaced_at(NodeId root, MatchMemory& memory, Graph& graph) {
  RememberedMatch* remembered = memory.find(root);
  if (remembered && (!remembered->matched() || remembered->accepted == false)) return std::nullopt;
  std::optional<PatternMatch> match = remembered ? memory.match(*remembered, root) : memory.search(root, remembered);
  if (!match) return std::nullopt;
  const bool replaced = replace_match(graph, *match).empty();
  if (remembered) remembered->accepted = replaced;
  return replaced ? std::move(match) : std::nullopt;
}

// One search of the whole graph; matches of a round share no node. Works in place, on nodes that remove_dead brings
// into order afterwards.
bool rewrite_round(CanonicalGraph& canonical, const std::vector<const FusionPattern*>& patterns) {
  Graph& graph = canonical.graph;
  const PatternRoots roots(graph);
  std::optional<SearchedGraph> searched;  // made when some pattern's ops are all there
  std::optional<NodeLooks> looks;
  bool changed = false;
  for (const FusionPattern* pattern : patterns) {
    const std::vector<NodeId> nodes = roots.of(*pattern);
    if (nodes.empty()) continue;
    if (!searched) {
      searched.emplace(graph);
      looks.emplace(*searched);
      canonical.heirs.assign(graph.nodes.size(), kNone);
    }
    MatchMemory memory(*searched, *looks, *pattern);
    for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
      if (graph.nodes[*it].output_count != 1) continue;
      const std::optional<PatternMatch> match = replaced_at(*it, memory, graph);
      if (!match) continue;
      changed = true;
      looks->forget(*it);
      for (const NodeId n : replaced_nodes(*searched, *match)) {
        searched->taken[n] = true;
        if (n != match->root) canonical.heirs[n] = match->root;
      }
    }
  }
  return changed;
}

}  // namespace

void recognize_patterns(CanonicalGraph& canonical, const PatternList& patterns) {
  std::vector<const FusionPattern*> rewriting;
  for (const auto& pattern : patterns)
    if (pattern->becomes == Becomes::kRewrite) rewriting.push_back(pattern.get());
  bool changed = false;
  for (int round = 0; round < kMostRounds; ++round) {
    const std::size_t nodes = canonical.graph.nodes.size();
    const bool again = rewrite_round(canonical, rewriting);
    // What was not to be replaced in the end may have left a part of its replacement.
    if (!again && canonical.graph.nodes.size() == nodes) break;
    changed = changed || again;
    canonical.heirs.resize(canonical.graph.nodes.size(), kNone);
    canonical.stands_for.resize(canonical.graph.nodes.size());
    remove_dead(canonical);
    if (!again) break;
  }
  // What stands between composite ops now may be known, or nothing.
  if (!changed) return;
  fold_constants(canonical);
  simplify_algebra(canonical);
}

}  // namespace fusec
