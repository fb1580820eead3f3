// Replaces a match of a rewriting pattern in the graph.
//
//   becomes softmax(x, dim=d)        root: y = div(e, s)   ->   root: y = softmax(x, dim=1)
#pragma once

#include <string>

#include "transforms/patterns/pattern.h"

namespace fusec {

// Turns the root into the outermost node of the replacement. Inner nodes are added at the end of the graph, and the
// caller must reorder the nodes. Returns "" on success. Otherwise returns the reason and leaves the root unchanged: the
// replacement must have the root's type and need no check at launch. Inner nodes may remain, unread.
std::string replace_match(Graph& graph, const PatternMatch& match);

}  // namespace fusec
