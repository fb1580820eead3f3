// A graph after all passes of canonicalization.
#pragma once

#include "transforms/fold_constants.h"
#include "transforms/remove_dead.h"
#include "transforms/simplify_algebra.h"

namespace fusec {

inline CanonicalGraph canonicalized(Graph graph) {
  CanonicalGraph canonical{.graph = std::move(graph)};
  canonical.stands_for = as_given(canonical.graph);
  remove_dead(canonical);
  fold_constants(canonical);
  simplify_algebra(canonical);
  return canonical;
}

}  // namespace fusec
