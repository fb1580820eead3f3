// Evaluates nodes whose operands are all constants, as the reference device would, and makes their results constants.
//
//   constant c: int64[3] = [2, 3, 4]
//   a = mul(c, 2)                          constant b: int64[3] = [5, 7, 9]
//   b = add(a, 1)
//   y = gather(x, b)                       y = gather(x, b)
//
// Constants are constants with `data`, and results of ops without operands (full, arange). Weights that come from a
// file or at run time are arguments of the model and are not folded. A node is not folded if its value is larger than
// both 4 KiB and the data it is made of, if evaluating it takes too long, if the user keeps it visible
// ("fuse": false), or if its shape depends on symbols.
#pragma once

#include "transforms/canonical_graph.h"

namespace fusec {

void fold_constants(CanonicalGraph& canonical);

// Folds only nodes for which the device computes bit-identical results (transforms/exact_node.h).
void fold_exact_constants(CanonicalGraph& canonical);

}  // namespace fusec
