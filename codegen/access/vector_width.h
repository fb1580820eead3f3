// How many neighbouring points a thread of a pointwise kernel makes: 16 bytes of the widest dtype, so that the accesses
// of neighbouring threads are adjacent.
//
//   y[t] = cast(x[t]), bfloat16 to float32:   4 points, 16 bytes of y and 8 of x
#pragma once

#include "analysis/kernel/kernel.h"
#include "ir/graph.h"

namespace fusec {

// Registers for `width` neighbouring elements of all loads.
int registers_of_loads(const Kernel& kernel, int width);

// Points per thread: 16 bytes of the widest dtype along the last axis, but at least one word of the narrowest. Fewer if
// the loads need too many registers.
int wanted_width(const Kernel& kernel, const Graph& graph);

// Points per thread without the minimum of one word for the narrowest dtype; it may be accessed by bytes or half words.
// Two 16-byte accesses per thread would request every sector twice.
int coalesced_width(const Kernel& kernel, const Graph& graph);

// Points per thread for 16 bytes of the widest dtype that is loaded or stored along any axis.
int wanted_planes_width(const Kernel& kernel);

}  // namespace fusec
