// Nodes that compute what is there already, or could be computed by less, go:
//
//   algebraic rules    relu(relu(x)), mul(x, 1), permute(permute(x)): transforms/algebraic_rules.h has them all
//   identities         a = reshape(x) to x's own shape: users of a take x
//   duplicates         c = add(x, y), d = add(x, y): users of d take c
//
// What is not needed any more goes with them. Each node is looked at once, after its operands are what they will be, so
// that nothing is left to do in the end. Kept: a node that is an output under its own name, an op that is not
// deterministic, custom launchers and collectives, and nodes with "fuse": false, whose results somebody wants to see.
#pragma once

#include "transforms/canonical_graph.h"

namespace fusec {

void simplify_algebra(CanonicalGraph& canonical);

}  // namespace fusec
