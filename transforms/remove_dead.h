// What no output needs goes: nodes, and constants whose data nobody reads. The nodes that stay are taken by depth from
// the outputs, operands first: the order of the result follows from the wiring alone, not from where a node stands in
// the file, and with it every later choice between equals.
#pragma once

#include "transforms/canonical_graph.h"

namespace fusec {

void remove_dead(CanonicalGraph& canonical);

}  // namespace fusec
