#include "transforms/patterns/claim.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <queue>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "ir/constant_data.h"
#include "ir/error.h"
#include "ir/spelling.h"
#include "transforms/patterns/conditions.h"
#include "transforms/patterns/match.h"
#include "transforms/patterns/match_memory.h"
#include "transforms/patterns/pattern_roots.h"
#include "transforms/patterns/replacement.h"

namespace fusec {
namespace {

constexpr std::int64_t kMostNodesTried = 60'000;  // nodes that may be lowered to see what they become
constexpr std::size_t kMostBefore = 64;           // nodes before a match that are looked at for other products
constexpr std::size_t kNear = 2;                  // nodes of a pattern that were found, for its miss to be a near one
constexpr std::size_t kFarthestSearch = 10000;    // nodes looked at for a circle; beyond, a claim is not worth it

bool claims_nodes(const FusionPattern& pattern) {
  return pattern.becomes != Becomes::kRewrite;
}

class Claiming {
 public:
  Claiming(const Graph& graph, const ClaimLimits& limits, TrialMemory& memory)
      : graph_(graph),
        limits_(limits),
        searched_(graph),
        looks_(searched_),
        lowering_(graph, memory, kMostNodesTried),
        claim_of_(graph.nodes.size(), kNone),
        open_end_(graph.nodes.size()) {
    std::iota(open_end_.begin(), open_end_.end(), NodeId{0});
    for (NodeId n = 0; n < graph.nodes.size(); ++n)
      if (graph.nodes[n].prepared) searched_.taken[n] = true;
  }

  void run(const FusionPattern& pattern, const std::vector<NodeId>& roots) {
    MatchMemory memory(searched_, looks_, pattern);
    roots_left_ = roots.size();
    for (auto it = roots.rbegin(); it != roots.rend(); ++it, --roots_left_)
      if (!searched_.taken[*it]) try_at(*it, memory);
  }

  // What is known of a match whose surroundings look the same holds here as well, but for what depends on nodes far
  // away.
  void try_at(NodeId root, MatchMemory& memory) {
    if (RememberedMatch* remembered = memory.find(root)) {
      if (!remembered->matched() || remembered->accepted == false) return;
      PatternMatch match = memory.match(*remembered, root);
      const bool accepted = remembered->accepted ? why_not_from_afar(match).empty() : why_not(match).empty();
      if (accepted) add(std::move(match));
      return;
    }
    RememberedMatch* remembered = nullptr;
    std::optional<PatternMatch> match = memory.search(root, remembered);
    if (!match) return;
    const bool accepted = why_not(*match).empty();
    if (remembered && accepted) remembered->accepted = true;
    if (remembered && !accepted && why_not_from_afar(*match).empty() && !lowering_.is_spent())
      remembered->accepted = false;
    if (accepted) add(std::move(*match));
  }

  void take_back(PatternClaim made) {
    const auto number = static_cast<std::uint32_t>(claims_.size());
    // Where one claim follows another, all that may come at once: a million of them are moved else, again and again.
    if (claims_.size() == claims_.capacity()) claims_.reserve(2 * claims_.size() + roots_left_ + 1);
    const PatternClaim& claim = claims_.emplace_back(std::move(made));
    for (const NodeId n : claim.nodes) {
      searched_.taken[n] = true;
      claim_of_[n] = number;
    }
    for (NodeId n = no_way_back_behind(claim.nodes.front()); n < claim.nodes.back(); n = no_way_back_behind(n))
      open_end_[n] = n + 1;
  }

  // "" where the match may be claimed.
  std::string why_not(const PatternMatch& match) {
    // Whoever writes a pattern of one node wants it claimed: for its name, its attributes, or before others take it.
    if (match.nodes.size() < 2 && match.pattern->becomes == Becomes::kGroup && is_builtin(*match.pattern))
      return "it is one node, which is a group as it is";
    if (match.nodes.size() > limits_.max_fused_ops)
      return fmt::format("it has {} nodes, the limit is {}", match.nodes.size(), limits_.max_fused_ops);
    const std::vector<ValueId> outputs = needed_of(searched_.graph, searched_.uses, searched_.is_output, match.nodes);
    if (const std::size_t count = limits_.max_args == 0 ? 0 : inputs_of(match.nodes).size() + outputs.size();
        count > limits_.max_args)
      return fmt::format("its kernel would have {} arguments, the limit is {}", count, limits_.max_args);
    if (outputs.size() > 1) {
      if (std::string circle = circle_through(match); !circle.empty()) return circle;
    }
    if (match.pattern->becomes == Becomes::kLibrary) return "";
    if (std::string waits = why_waiting(match); !waits.empty()) return waits;
    const TrialResult lowered = lowering_.of(match.nodes, outputs);
    if (!lowered.known) return "whether its nodes are one kernel was not tried: too many ever new matches before";
    if (lowered.kernels != 1) return fmt::format("its nodes would be {} kernels", lowered.kernels);
    // A product stays one.
    for (const NodeId n : match.nodes) {
      if (!is_product(n)) continue;
      const Node& node = graph_.nodes[n];
      if (lowering_.of(std::span(&n, 1), std::span(&node.first_output, 1)).strength > lowered.strength)
        return fmt::format("with {} in it, the kernel would have a worse form", in_quotes(node.name));
    }
    if (lowered.row_product)
      if (std::string why = why_apart(match.nodes, lowered.seconds); !why.empty()) return why;
    return is_builtin(*match.pattern) ? why_nodes_alone(match.nodes, lowered.seconds) : "";
  }

  const SearchedGraph& searched() const { return searched_; }
  std::vector<PatternClaim> claims() && { return std::move(claims_); }
  const std::vector<std::uint32_t>& claim_of() const { return claim_of_; }

 private:
  bool is_product(NodeId n) const {
    const std::string& family = graph_.nodes[n].op->family;
    return family == "matrix" || family == "quantized";
  }

  // Circles may lead anywhere, and what a product waits for may be far before it.
  std::string why_not_from_afar(const PatternMatch& match) {
    std::string circle = circle_outside(match);
    return circle.empty() && match.pattern->becomes != Becomes::kLibrary ? why_waiting(match) : circle;
  }

  // Products of one operand stand beside one another in one launch, unless one waits in its epilogue for what is made
  // of another: v = linear(x) in sub(v, what the state holds for k = linear(x)).
  std::string why_waiting(const PatternMatch& match) const {
    if (!is_builtin(*match.pattern)) return "";
    const auto is_inside = [&](NodeId n) { return std::ranges::binary_search(match.nodes, n); };
    for (const NodeId n : match.nodes) {
      if (!is_product(n)) continue;
      const ValueId shared = graph_.nodes[n].inputs[0];
      std::set<NodeId> beside;
      for (const NodeId reader : searched_.uses.of(shared))
        if (is_product(reader) && !is_inside(reader)) beside.insert(reader);
      if (beside.empty()) continue;
      if (const NodeId first = made_of_one(match.nodes, beside); first != kNone)
        return fmt::format("{} would wait for what is made of {}, beside which it can stand",
                           in_quotes(graph_.nodes[n].name), in_quotes(graph_.nodes[first].name));
    }
    return "";
  }

  // One of these products of which something is reduced, nearby, that the nodes read; kNone where there is none. What
  // is elementwise between two products goes into their epilogues, and is read once.
  NodeId made_of_one(const std::vector<NodeId>& nodes, const std::set<NodeId>& products) const {
    struct Before {
      NodeId node;
      bool reduced;  // on the way from here to the match
    };
    std::vector<Before> before;
    for (const NodeId n : nodes) before.push_back({n, false});
    for (std::size_t i = 0; i < before.size() && before.size() < nodes.size() + kMostBefore; ++i)
      for (const ValueId v : graph_.nodes[before[i].node].inputs) {
        const NodeId producer = v == kNone ? kNone : graph_.value(v).producer;
        if (producer == kNone) continue;
        if (before[i].reduced && products.contains(producer)) return producer;
        const Before here{producer, before[i].reduced || reduces(producer)};
        const auto known = [&](const Before& b) { return b.node == producer && b.reduced >= here.reduced; };
        if (std::ranges::none_of(before, known)) before.push_back(here);
      }
    return kNone;
  }

  bool reduces(NodeId n) const {
    const std::string& family = graph_.nodes[n].op->family;
    return family == "reduction" || family == "normalization";
  }

  // A product whose rows are reduced has few blocks, where its rows are few or long: two kernels may take less time.
  std::string why_apart(const std::vector<NodeId>& nodes, double together) {
    std::vector<NodeId> product, behind;
    for (const NodeId n : nodes) {
      const Node& node = graph_.nodes[n];
      const bool reads_behind = std::ranges::any_of(node.inputs, [&](ValueId v) {
        return v != kNone && std::ranges::binary_search(behind, graph_.value(v).producer);
      });
      constexpr int kRows = 1;
      const bool reduces = !is_product(n) && seconds_and_strength({n}).second == kRows;
      (reads_behind || reduces ? behind : product).push_back(n);
    }
    if (product.empty() || behind.empty()) return "";
    const double apart = seconds_and_strength(product).first + seconds_and_strength(behind).first;
    if (together <= apart) return "";
    return fmt::format("one kernel is predicted to take {:.1f} us, the product and the reduction of its rows {:.1f} us",
                       together * 1e6, apart * 1e6);
  }

  // A pattern knows a better form, but not what that takes on every target: it is never to be dearer than its nodes.
  std::string why_nodes_alone(const std::vector<NodeId>& nodes, double together) {
    constexpr double kRounding = 1 + 1e-9;
    double alone = 0;
    for (const NodeId n : nodes) {
      const TrialResult& lowered = lowering_.of(
          std::span(&n, 1), needed_of(searched_.graph, searched_.uses, searched_.is_output, std::span(&n, 1)));
      if (!lowered.known) return "";
      alone += lowered.seconds;
    }
    if (together <= kRounding * alone) return "";
    return fmt::format("one kernel is predicted to take {:.1f} us, its nodes alone {:.1f} us", together * 1e6,
                       alone * 1e6);
  }

  std::pair<double, int> seconds_and_strength(const std::vector<NodeId>& nodes) {
    const TrialResult& lowered =
        lowering_.of(nodes, needed_of(searched_.graph, searched_.uses, searched_.is_output, nodes));
    return {lowered.seconds, lowered.strength};
  }

  std::set<ValueId> inputs_of(const std::vector<NodeId>& nodes) const {
    std::set<ValueId> inputs;
    for (const NodeId n : nodes)
      for (const ValueId v : graph_.nodes[n].inputs) {
        if (v == kNone) continue;
        const Value& value = graph_.value(v);
        const bool inside = value.producer != kNone && std::ranges::binary_search(nodes, value.producer);
        if (!inside && value.kind != Value::Kind::kNumber && value.kind != Value::Kind::kDim) inputs.insert(v);
      }
    return inputs;
  }

  // The first node from n on behind which nothing leads back: ways go forward, and inside of a claim back to its first
  // node at most, so it is the first that no claim spans together with the next.
  NodeId no_way_back_behind(NodeId n) {
    NodeId end = n;
    while (open_end_[end] != end) end = open_end_[end];
    while (open_end_[n] != end) n = std::exchange(open_end_[n], end);
    return end;
  }

  // Ways out of a match that has one result begin at its root, and never lead back.
  std::string circle_outside(const PatternMatch& match) {
    const auto escapes = [&](NodeId n) {
      const Node& node = graph_.nodes[n];
      for (ValueId v = node.first_output; v < node.first_output + node.output_count; ++v)
        if (std::ranges::any_of(searched_.uses.of(v),
                                [&](NodeId reader) { return !std::ranges::binary_search(match.nodes, reader); }))
          return true;
      return false;
    };
    if (std::none_of(match.nodes.begin(), match.nodes.end() - 1, escapes)) return "";
    return circle_through(match);
  }

  // Does a way lead out of the match and back into it? Only values that escape can begin one. Claims made before are
  // one place each: who enters leaves by all their values.
  std::string circle_through(const PatternMatch& match) {
    std::unordered_set<NodeId> seen;
    std::vector<NodeId> queue;
    const auto inside = [&](NodeId n) { return std::ranges::binary_search(match.nodes, n); };
    const NodeId last = no_way_back_behind(match.root);
    const auto enter = [&](NodeId n) {
      if (n > last || seen.contains(n)) return;
      const std::span<const NodeId> together =
          claim_of_[n] == kNone ? std::span<const NodeId>(&n, 1) : std::span<const NodeId>(claims_[claim_of_[n]].nodes);
      for (const NodeId m : together) {
        seen.insert(m);
        queue.push_back(m);
      }
    };
    const auto follow = [&](NodeId n, bool from_inside) -> NodeId {
      const Node& node = graph_.nodes[n];
      for (ValueId v = node.first_output; v < node.first_output + node.output_count; ++v)
        for (const NodeId reader : searched_.uses.of(v)) {
          if (!inside(reader))
            enter(reader);
          else if (!from_inside)
            return n;
        }
      return kNone;
    };
    for (const NodeId n : match.nodes) follow(n, true);
    for (std::size_t next = 0; next < queue.size(); ++next) {
      if (next > kFarthestSearch) return "whether it closes a circle takes too long to find out";
      if (const NodeId back = follow(queue[next], false); back != kNone)
        return fmt::format("contracting it would close a circle through {}", in_quotes(graph_.nodes[back].name));
    }
    return "";
  }

  static std::string text_of(const AttributeValue& value) {
    if (const auto* i = std::get_if<std::int64_t>(&value)) return std::to_string(*i);
    if (const auto* d = std::get_if<double>(&value)) return fmt::format("{}", *d);
    if (const auto* s = std::get_if<Scalar>(&value)) return fmt::format("{}", s->as_double());
    if (const auto* b = std::get_if<bool>(&value)) return *b ? "true" : "false";
    if (const auto* t = std::get_if<std::string>(&value)) return *t;
    if (const auto* dtype = std::get_if<DType>(&value)) return std::string(name(*dtype));
    return "";
  }

  void add(PatternMatch match) {
    const FusionPattern& pattern = *match.pattern;
    PatternClaim claim{.pattern = pattern.name, .code = pattern.code};
    for (const auto& [attribute, number] : pattern.group_attributes) {
      if (match.attributes[number])
        claim.attributes.emplace_back(attribute, text_of(*match.attributes[number]));
      else if (const auto scalar = number_of(graph_, match.values[number]))
        claim.attributes.emplace_back(attribute, fmt::format("{}", scalar->as_double()));
    }
    if (pattern.attributes_getter)
      for (auto& attribute : pattern.attributes_getter({searched_, match}))
        claim.attributes.push_back(std::move(attribute));
    std::vector<std::pair<std::uint32_t, NodeId>> parts;
    for (std::uint32_t i = 0; i < pattern.names.size(); ++i) {
      const ValueId v = match.values[i];
      const NodeId producer = v == kNone ? kNone : graph_.value(v).producer;
      if (producer == kNone || !std::ranges::binary_search(match.nodes, producer)) continue;
      const std::string& part = pattern.names[i];
      if (!part.starts_with('_') && part.find('\'') == std::string::npos) parts.emplace_back(i, producer);
    }
    claim.parts.reserve(parts.size());
    for (const auto& [name, producer] : parts) claim.parts.emplace_back(pattern.names[name], producer);
    if (pattern.bind_constants) claim.bound_constants = constants_of(match.nodes);
    claim.nodes = std::move(match.nodes);
    take_back(std::move(claim));
  }

  std::vector<ValueId> constants_of(const std::vector<NodeId>& nodes) const {
    std::vector<ValueId> constants;
    for (const NodeId n : nodes)
      for (const ValueId v : graph_.nodes[n].inputs)
        if (v != kNone && graph_.constant_of(v) && std::ranges::find(constants, v) == constants.end())
          constants.push_back(v);
    return constants;
  }

  const Graph& graph_;
  const ClaimLimits limits_;
  SearchedGraph searched_;
  NodeLooks looks_;
  TrialLowering lowering_;
  std::vector<std::uint32_t> claim_of_;  // by node
  std::vector<NodeId> open_end_;         // by node: itself, or a later one if a claim spans it and the next
  std::vector<PatternClaim> claims_;
  std::size_t roots_left_ = 0;  // of the pattern that has its turn
};

// The nodes in an order in which each claim's stand side by side: of what is ready, always what ended first before.
std::vector<NodeId> order_of(const Graph& graph, const std::vector<PatternClaim>& claims,
                             const std::vector<std::uint32_t>& claim_of) {
  const NodeId count = static_cast<NodeId>(graph.nodes.size());
  const auto leader = [&](NodeId n) { return claim_of[n] == kNone ? n : claims[claim_of[n]].nodes.back(); };
  std::vector<std::uint32_t> waiting(count, 0);
  std::vector<std::vector<NodeId>> followers(count);
  for (NodeId n = 0; n < count; ++n)
    for (const ValueId v : graph.nodes[n].inputs) {
      const NodeId producer = v == kNone ? kNone : graph.value(v).producer;
      if (producer == kNone || leader(producer) == leader(n)) continue;
      followers[leader(producer)].push_back(leader(n));
      ++waiting[leader(n)];
    }
  std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> ready;
  for (NodeId n = 0; n < count; ++n)
    if (leader(n) == n && waiting[n] == 0) ready.push(n);
  std::vector<NodeId> order;
  order.reserve(count);
  while (!ready.empty()) {
    const NodeId n = ready.top();
    ready.pop();
    if (claim_of[n] == kNone)
      order.push_back(n);
    else
      order.insert(order.end(), claims[claim_of[n]].nodes.begin(), claims[claim_of[n]].nodes.end());
    for (const NodeId follower : followers[n])
      if (--waiting[follower] == 0) ready.push(follower);
  }
  if (order.size() != count) throw InternalError("claims of patterns close a circle");
  return order;
}

// They were found from the last node to the first, one pattern after the other.
void sort_by_nodes(std::vector<PatternClaim>& claims) {
  const auto first_node = [](const PatternClaim& claim) { return claim.nodes.front(); };
  std::ranges::reverse(claims);
  if (std::ranges::is_sorted(claims, {}, first_node)) return;
  std::vector<std::pair<NodeId, std::size_t>> order;
  order.reserve(claims.size());
  for (std::size_t c = 0; c < claims.size(); ++c) order.emplace_back(first_node(claims[c]), c);
  std::ranges::sort(order);
  std::vector<PatternClaim> sorted;
  sorted.reserve(claims.size());
  for (const auto& [node, c] : order) sorted.push_back(std::move(claims[c]));
  claims = std::move(sorted);
}

void bring_together(CanonicalGraph& canonical, std::vector<PatternClaim>& claims,
                    const std::vector<std::uint32_t>& claim_of) {
  const auto together = [](const PatternClaim& claim) {
    return claim.nodes.back() - claim.nodes.front() + 1 == claim.nodes.size();
  };
  if (std::ranges::all_of(claims, together)) {
    sort_by_nodes(claims);
    return;
  }
  Graph& graph = canonical.graph;
  const std::vector<NodeId> order = order_of(graph, claims, claim_of);
  std::vector<NodeId> now(order.size());
  for (NodeId n = 0; n < order.size(); ++n) now[order[n]] = n;
  const std::vector<ValueId> value_now = graph.rearrange(order, std::vector<bool>(graph.constants.size(), true));
  for (PatternClaim& claim : claims) {
    for (NodeId& n : claim.nodes) n = now[n];
    for (auto& [part, node] : claim.parts) node = now[node];
    for (ValueId& v : claim.bound_constants) v = value_now[v];
  }
  note_fates(canonical, now);
  sort_by_nodes(claims);
}

// The nodes and what follows them closely: where a pattern that holds one of them may have its root.
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

// What a rewriting pattern matches and does not replace. The graph stays as it is.
std::string why_no_rewrite(Graph graph, const PatternMatch& match) {
  if (graph.nodes[match.root].output_count != 1) return "its root has several results";
  return replace_match(graph, match);
}

struct FoundMiss {
  std::size_t place;  // of the root in the list
  bool whole;         // all its nodes were there
  bool late;          // another pattern had claimed them before its turn, or does now
  std::size_t count;
  NotClaimed miss;
};

// Tried because the user wants it, be it of one node.
bool is_of_library(const FusionPattern& pattern) {
  return pattern.becomes == Becomes::kLibrary || pattern.name.starts_with("cublaslt.");
}

bool computes_constants(const PatternTerm& term) {
  return term.op == "known" || term.op == "folded" || std::ranges::any_of(term.operands, computes_constants);
}

// All nodes of a pattern that had its turn too late, or that rewrites: a condition alone keeps it from what another
// pattern has claimed. That constants cannot be computed now is nothing to tell of: most factors are no constants.
NearMiss missed_by_condition(const SearchedGraph& untaken, const FusionPattern& pattern, NodeId root) {
  NearMiss miss;
  if (computes_constants(pattern.replacement)) return {};
  if (match_pattern(untaken, pattern, root, &miss) || !miss.whole || !miss.specific) return {};
  return miss;
}

// The graph with nothing kept out of fusion, to see what would match then; nothing where nothing is.
std::optional<Graph> without_kept(const Graph& graph) {
  if (std::ranges::all_of(graph.nodes, &Node::fuse)) return std::nullopt;
  Graph open = graph;
  for (Node& node : open.nodes) node.fuse = true;
  return open;
}

// A match but for nodes that the user keeps out of fusion.
NearMiss missed_by_wish(const Graph& graph, const SearchedGraph& open, const FusionPattern& pattern, NodeId root) {
  const auto match = match_pattern(open, pattern, root);
  if (!match) return {};
  const auto kept = std::ranges::find_if(match->nodes, [&](NodeId n) { return !graph.nodes[n].fuse; });
  if (kept == match->nodes.end()) return {};
  return {match->nodes, true, true, fmt::format("{} is kept out of fusion", in_quotes(graph.nodes[*kept].name))};
}

// Of each root those that only a condition keeps away, or else the few that came nearest as well.
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

std::vector<PatternClaim> claim_patterns(CanonicalGraph& canonical, const PatternList& patterns,
                                         const ClaimLimits& limits, TrialMemory* memory) {
  TrialMemory own;
  const PatternRoots roots(canonical.graph);
  std::optional<Claiming> claiming;
  for (const auto& pattern : patterns) {
    if (!claims_nodes(*pattern)) continue;
    const std::vector<NodeId> nodes = roots.of(*pattern);
    if (nodes.empty()) continue;
    if (!claiming) claiming.emplace(canonical.graph, limits, memory ? *memory : own);
    claiming->run(*pattern, nodes);
  }
  if (!claiming) return {};
  const std::vector<std::uint32_t> claim_of = claiming->claim_of();
  std::vector<PatternClaim> claims = std::move(*claiming).claims();
  if (!claims.empty()) bring_together(canonical, claims, claim_of);
  return claims;
}

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
  // Each pattern finds the graph as it found it: with the nodes taken that earlier ones have claimed.
  for (const auto& pattern : patterns) {
    for (std::size_t i = 0; i < roots.size(); ++i) {
      const auto found_claim = claim_of.find(roots[i]);
      const PatternClaim* claim = found_claim == claim_of.end() ? nullptr : found_claim->second;
      if (claim && claim->pattern == pattern->name) continue;
      NearMiss miss;
      const bool late = claiming.searched().taken[roots[i]] || (claim && !claims_nodes(*pattern));
      if (late) {
        miss = missed_by_condition(untaken, *pattern, roots[i]);
      } else if (const auto match = match_pattern(claiming.searched(), *pattern, roots[i], &miss)) {
        miss = {match->nodes, true, true,
                claims_nodes(*pattern) ? claiming.why_not(*match) : why_no_rewrite(graph, *match)};
      } else if (open) {
        if (NearMiss wish = missed_by_wish(graph, *open, *pattern, roots[i]); !wish.why.empty()) miss = std::move(wish);
      }
      if (miss.why.empty() || std::ranges::none_of(miss.nodes, is_asked)) continue;
      // What another pattern has is missed only where more would have been had, or by a detail.
      const bool is_detail = miss.specific && is_asked(roots[i]);
      if (!miss.whole && !is_detail && (claim || !is_asked(roots[i])) &&
          miss.nodes.size() <= (claim ? claim->nodes.size() : kNear))
        continue;
      const bool is_asked_for = !is_builtin(*pattern) || is_of_library(*pattern);
      if (miss.nodes.size() >= kNear || (miss.whole && is_asked_for))
        found.push_back({i, miss.whole, late, miss.nodes.size(), {roots[i], pattern->name, std::move(miss.why)}});
    }
    for (const PatternClaim& claim : claims)
      if (claim.pattern == pattern->name) claiming.take_back(claim);
  }
  return nearest(std::move(found));
}

}  // namespace fusec
