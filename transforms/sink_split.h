// Trees of pieces: a split of a split, a slice of a chunk, a select of a slice become pieces of the tensor itself, each
// a slice of its own. So a piece is index arithmetic in whichever kernel reads it, and none waits for the others.
//
//   a, b = split(x, [4, 4])              g = slice(x, 0, 2)
//   g, u = chunk(a, 2)            ->     u = slice(x, 2, 4)
//   v = select(b, 1)                     v = select(x, 5)
//
// A select of a dimension that a reshape split in two is such a slice, too. Only pieces along one dimension go
// together, and only where positions are known, by numbers or by symbols. A split that no other piece is cut from, or
// cut for, stays as it is.
#pragma once

#include "transforms/canonical_graph.h"

namespace fusec {

void sink_split(CanonicalGraph& canonical);

}  // namespace fusec
