// Removes nodes that compute an existing value or can be replaced by something cheaper:
//
//   algebraic rules    relu(relu(x)), mul(x, 1), permute(permute(x)): see transforms/algebraic_rules.h
//   identities         a = reshape(x) to x's own shape: readers of a read x
//   duplicates         c = add(x, y), d = add(x, y): readers of d read c
//
// Nodes that become dead are removed, too. One pass in topological order reaches the fixed point, because each node is
// simplified after its operands. These nodes stay: outputs, ops that are not deterministic, custom launchers,
// collectives, and nodes with "fuse": false, whose results the user wants to see.
#pragma once

#include "transforms/canonical_graph.h"

namespace fusec {

void simplify_algebra(CanonicalGraph& canonical);

}  // namespace fusec
