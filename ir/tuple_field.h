// What a value is, seen through `tuple` and `get_item`, which only wire values together and have no memory:
//
//   t = tuple(a, b);  y = get_item(t, 1)      resolve_tuple(y) is b
#pragma once

#include "ir/graph.h"

namespace fusec {

// The field that `value` names; `value` itself where it is no get_item, or takes a field of a tuple of another op.
ValueId resolve_tuple(const Graph& graph, ValueId value);

}  // namespace fusec
