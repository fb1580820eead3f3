#include "transforms/patterns/near_misses.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "ir/spelling.h"
#include "transforms/patterns/claiming.h"
#include "transforms/patterns/match.h"
#include "transforms/patterns/replacement.h"

namespace fusec {
namespace {

constexpr std::size_t kNear = 2;  // fewest found nodes of a near miss

// The nodes and the nodes up to 12 steps after them, where a pattern that includes one of them may have its root.
std::vector<NodeId> nodes_behind(const SearchedGraph& searched, const std::vector<NodeId>& nodes) {
  constexpr int kFarthest = 12;
  constexpr std::size_t kMost = 64;
  std::vector<NodeId> found = nodes;
  std::size_t first = 0;
  for (int step = 0; step < kFarthest; ++step) {
    const std::size_t end = found.size();
    for (; first < end; ++first) {
      const Node& node = searched.graph.nodes[found[first]];
      for (ValueId v = node.first_output; v < node.first_output + node.output_count; ++v)
        for (const NodeId reader : searched.uses.of(v)) {
          if (found.size() >= nodes.size() + kMost) return found;
          if (std::ranges::find(found, reader) == found.end()) found.push_back(reader);
        }
    }
  }
  return found;
}

// Why a rewriting pattern does not replace its match. Works on a copy of the graph.
std::string why_no_rewrite(Graph graph, const PatternMatch& match) {
  if (graph.nodes[match.root].output_count != 1) return "its root has several results";
  return replace_match(graph, match);
}

struct FoundMiss {
  std::size_t place;  // position of the root in the list of roots
  bool whole;         // all nodes were found
  bool late;          // another pattern had claimed the root first
  std::size_t count;  // found nodes
  NotClaimed miss;
};

// Whether the pattern is tried on the user's demand (--gemm). Its misses are reported even with one node.
bool is_of_library(const ListedPattern& pattern) {
  return pattern.becomes() == Becomes::kLibrary || pattern.name().starts_with("cublaslt.");
}

bool computes_constants(const PatternTerm& term) {
  return term.op == "known" || term.op == "folded" || std::ranges::any_of(term.operands, computes_constants);
}

// A miss of a pattern whose nodes another pattern has claimed: reported only if all nodes are there and just a
// condition fails. Patterns that compute constants are not reported, because most factors are no constants.
NearMiss missed_by_condition(const SearchedGraph& untaken, const FusionPattern& pattern, NodeId root) {
  NearMiss miss;
  if (computes_constants(pattern.replacement)) return {};
  if (match_pattern(untaken, pattern, root, &miss) || !miss.whole || !miss.specific) return {};
  return miss;
}

// A copy of the graph in which every node may fuse; nothing if that is so already.
std::optional<Graph> without_kept(const Graph& graph) {
  if (std::ranges::all_of(graph.nodes, &Node::fuse)) return std::nullopt;
  Graph open = graph;
  for (Node& node : open.nodes) node.fuse = true;
  return open;
}

// A match that only nodes kept out of fusion by the user prevent.
NearMiss missed_by_wish(const Graph& graph, const SearchedGraph& open, const FusionPattern& pattern, NodeId root) {
  const auto match = match_pattern(open, pattern, root);
  if (!match) return {};
  const auto kept = std::ranges::find_if(match->nodes, [&](NodeId n) { return !graph.nodes[n].fuse; });
  if (kept == match->nodes.end()) return {};
  return {match->nodes, true, true, fmt::format("{} is kept out of fusion", in_quotes(graph.nodes[*kept].name))};
}

// For each root, the misses with all nodes found; if there are none, or only late ones, also up to 3 partial misses.
std::vector<NotClaimed> nearest(std::vector<FoundMiss> found) {
  constexpr std::size_t kMostPartial = 3;
  std::ranges::stable_sort(found, [](const FoundMiss& a, const FoundMiss& b) {
    return std::tuple(a.place, !a.whole, a.late, b.count) < std::tuple(b.place, !b.whole, b.late, a.count);
  });
  std::vector<NotClaimed> result;
  std::size_t first = 0, partial = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i].place != found[first].place) {
      first = i;
      partial = 0;
    }
    const bool is_told = found[i].whole || ((!found[first].whole || found[first].late) && partial++ < kMostPartial);
    if (is_told) result.push_back(std::move(found[i].miss));
  }
  return result;
}

}  // namespace

std::vector<NotClaimed> near_misses(const Graph& graph, const PatternList& patterns,
                                    const std::vector<PatternClaim>& claims, const std::vector<NodeId>& nodes,
                                    const ClaimLimits& limits) {
  TrialMemory memory;
  Claiming claiming(graph, limits, memory);
  const std::vector<NodeId> roots = nodes_behind(claiming.searched(), nodes);
  std::unordered_map<NodeId, const PatternClaim*> claim_of;
  for (const PatternClaim& claim : claims)
    for (const NodeId n : claim.nodes) claim_of[n] = &claim;
  std::vector<FoundMiss> found;
  const SearchedGraph untaken(graph);
  const std::optional<Graph> without = without_kept(graph);
  const std::optional<SearchedGraph> open = without ? std::optional<SearchedGraph>(*without) : std::nullopt;
  const auto is_asked = [&](NodeId n) { return std::ranges::find(nodes, n) != nodes.end(); };
  // Replay: each pattern sees the nodes as taken that earlier patterns claimed.
  for (const ListedPattern& pattern : patterns) {
    for (std::size_t i = 0; i < roots.size(); ++i) {
      const auto found_claim = claim_of.find(roots[i]);
      const PatternClaim* claim = found_claim == claim_of.end() ? nullptr : found_claim->second;
      if (claim && claim->pattern == pattern->name) continue;
      NearMiss miss;
      const bool late = claiming.searched().taken[roots[i]] || (claim && !claims_nodes(pattern.becomes()));
      if (late) {
        miss = missed_by_condition(untaken, *pattern, roots[i]);
      } else if (const auto match = match_pattern(claiming.searched(), *pattern, roots[i], &miss)) {
        miss = {match->nodes, true, true,
                claims_nodes(pattern.becomes()) ? claiming.why_not(*match) : why_no_rewrite(graph, *match)};
      } else if (open) {
        if (NearMiss wish = missed_by_wish(graph, *open, *pattern, roots[i]); !wish.why.empty()) miss = std::move(wish);
      }
      if (miss.why.empty() || std::ranges::none_of(miss.nodes, is_asked)) continue;
      // Report a partial miss at a claimed root only if it found more nodes than the claim, or a detail is to blame.
      const bool is_detail = miss.specific && is_asked(roots[i]);
      if (!miss.whole && !is_detail && (claim || !is_asked(roots[i])) &&
          miss.nodes.size() <= (claim ? claim->nodes.size() : kNear))
        continue;
      const bool is_asked_for = !pattern.is_builtin() || is_of_library(pattern);
      if (miss.nodes.size() >= kNear || (miss.whole && is_asked_for))
        found.push_back({i, miss.whole, late, miss.nodes.size(), {roots[i], pattern->name, std::move(miss.why)}});
    }
    for (const PatternClaim& claim : claims)
      if (claim.pattern == pattern->name) claiming.take_back(claim);
  }
  return nearest(std::move(found));
}

}  // namespace fusec
