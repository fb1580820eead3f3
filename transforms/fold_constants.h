// Nodes that are made of constants alone are evaluated now, as the reference device would, and become constants.
//
//   constant c: int64[3] = [2, 3, 4]
//   a = mul(c, 2)                          constant b: int64[3] = [5, 7, 9]
//   b = add(a, 1)
//   y = gather(x, b)                       y = gather(x, b)
//
// Constants are those with `data`, and what makes something of nothing (full, arange). Weights that come from a file or
// at run time are arguments of the model and are not looked at. A node stays where its value would make the emitted
// file grow (it is larger than the data it is made of and than a few KiB), where computing it would take long, and
// where somebody wants to see it ("fuse": false) or its shape depends on symbols.
#pragma once

#include "transforms/canonical_graph.h"

namespace fusec {

void fold_constants(CanonicalGraph& canonical);

// The same for nodes alone of which the device would give the very same bits: what fusion must not change a bit of.
void fold_exact_constants(CanonicalGraph& canonical);

}  // namespace fusec
