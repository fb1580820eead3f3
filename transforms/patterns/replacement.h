// What a rewriting pattern puts in a match's place, made in the graph itself.
//
//   becomes softmax(x, dim=d)        root: y = div(e, s)   ->   root: y = softmax(x, dim=1)
#pragma once

#include <string>

#include "transforms/patterns/pattern.h"

namespace fusec {

// Turns the root into the replacement; nodes inside of it are added at the end of the graph (whoever calls brings the
// nodes into order again). "" where that was done; else why not, with the root as it was: the replacement must have
// the root's type, and nothing in it may be left to be checked at launch.
std::string replace_match(Graph& graph, const PatternMatch& match);

}  // namespace fusec
