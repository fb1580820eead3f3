// How many neighbouring points a thread of a pointwise kernel makes at a time: as many as are 16 bytes of the widest
// dtype, so that neighbouring threads' accesses touch.
//
//   y[t] = cast(x[t]), bfloat16 to float32:   4 points, 16 bytes of y and 8 of x
#pragma once

#include "analysis/kernel/kernel.h"
#include "ir/graph.h"

namespace fusec {

// Registers that so many neighbours of all loads take.
int registers_of_loads(const Kernel& kernel, int width);

// Elements of a group: 16 bytes of the widest dtype that lies along the last axis, so that neighbouring threads'
// accesses touch; at least a word of the narrowest. Fewer where a thread has no registers for as many of all loads.
int wanted_width(const Kernel& kernel, const Graph& graph);

// Without words of the narrowest, of which bytes and halves will do: two accesses of 16 bytes to a thread ask for every
// sector twice.
int coalesced_width(const Kernel& kernel, const Graph& graph);

// The same of whatever is loaded or stored: 16 bytes of the widest.
int wanted_planes_width(const Kernel& kernel);

}  // namespace fusec
