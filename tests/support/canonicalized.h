// A graph as the passes of canonicalization take it, and after all of them.
#pragma once

#include <string>
#include <utility>

#include "ir/text.h"
#include "transforms/fold_constants.h"
#include "transforms/remove_dead.h"
#include "transforms/simplify_algebra.h"

namespace fusec {

inline CanonicalGraph canonical_of(Graph graph) {
  CanonicalGraph canonical{.graph = std::move(graph), .stands_for = {}, .dropped = {}, .folded = {}, .heirs = {}};
  canonical.stands_for = as_given(canonical.graph);
  return canonical;
}

inline CanonicalGraph canonical_of(const std::string& nodes) {
  return canonical_of(parse_graph_text("model \"m\"\n" + nodes));
}

inline CanonicalGraph canonicalized(Graph graph) {
  CanonicalGraph canonical = canonical_of(std::move(graph));
  remove_dead(canonical);
  fold_constants(canonical);
  simplify_algebra(canonical);
  return canonical;
}

}  // namespace fusec
