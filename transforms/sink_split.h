// Flattens trees of pieces: a split of a split, a slice of a chunk, or a select of a slice becomes a slice of the
// tensor itself. Each piece is then index arithmetic in the kernel that reads it, and no piece depends on another.
//
//   a, b = split(x, [4, 4])              g = slice(x, 0, 2)
//   g, u = chunk(a, 2)            ->     u = slice(x, 2, 4)
//   v = select(b, 1)                     v = select(x, 5)
//
// A select on one half of a dimension that a reshape split in two becomes a slice, too. Only pieces along the same
// dimension compose, and only if their positions are known as numbers or symbols. A split outside a tree of pieces is
// not changed.
#pragma once

#include "transforms/canonical_graph.h"

namespace fusec {

void sink_split(CanonicalGraph& canonical);

}  // namespace fusec
