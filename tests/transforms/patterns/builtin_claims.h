// What the built-in patterns claim of a graph in text form, as text.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "ir/text.h"
#include "ir/verify.h"
#include "transforms/patterns/builtin_patterns.h"
#include "transforms/patterns/claim.h"
#include "transforms/patterns/near_misses.h"
#include "transforms/patterns/pattern_list.h"

namespace fusec {

// Without those of libraries.
inline const PatternList& our_patterns() {
  static const PatternList patterns = [] {
    PatternList ours = listed(builtin_pattern_table());
    std::erase_if(ours, [](const ListedPattern& p) { return !p.name().starts_with("fusec."); });
    return ordered(std::move(ours));
  }();
  return patterns;
}

struct BuiltinClaims {
  CanonicalGraph canonical;
  std::vector<PatternClaim> claims;
};

inline BuiltinClaims builtin_claims(const std::string& text) {
  BuiltinClaims result{.canonical = {.graph = parse_graph_text("model \"m\"\n" + text),
                                     .stands_for = {},
                                     .dropped = {},
                                     .folded = {},
                                     .heirs = {}},
                       .claims = {}};
  result.canonical.stands_for = as_given(result.canonical.graph);
  result.claims = claim_patterns(result.canonical, our_patterns());
  CHECK(first_problem(result.canonical.graph) == "");
  return result;
}

// "fusec.swiglu{a h alpha=1.702}" for each claim, without the prefix "fusec.".
inline std::string claimed(const std::string& text) {
  const BuiltinClaims found = builtin_claims(text);
  std::string result;
  for (const PatternClaim& claim : found.claims) {
    result += (result.empty() ? "" : " ") + claim.pattern.substr(6) + "{";
    for (std::size_t i = 0; i < claim.nodes.size(); ++i)
      result += (i ? " " : "") + found.canonical.graph.nodes[claim.nodes[i]].name;
    for (const auto& [name, value] : claim.attributes) result += " " + name + "=" + value;
    result += "}";
  }
  return result;
}

// Why there is no claim of the pattern at the node; "" where the graph does not resemble it.
inline std::string why_not_claimed(const std::string& text, const std::string& pattern, const char* node) {
  BuiltinClaims found = builtin_claims(text);
  const Graph& graph = found.canonical.graph;
  for (const NotClaimed& miss : near_misses(graph, our_patterns(), found.claims, {graph.find_node(node)}))
    if (miss.pattern == "fusec." + pattern) return miss.why;
  return "";
}

}  // namespace fusec
