// Looks through `tuple` and `get_item`, which only group values and have no memory:
//
//   t = tuple(a, b);  y = get_item(t, 1)      resolve_tuple(y) is b
#pragma once

#include "ir/graph.h"

namespace fusec {

// The field that a get_item result names. `value` itself if it is not a get_item result, or if another op than `tuple`
// made the tuple.
ValueId resolve_tuple(const Graph& graph, ValueId value);

}  // namespace fusec
