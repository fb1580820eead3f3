// A model of many equal layers, out of one: its first output becomes the first input of the next layer, every layer has
// constants of its own, all other inputs are shared.
//
//   x, mask ─▶ block ─▶ block ─▶ block ─▶ ... ─▶ y
#pragma once

#include <cstdint>

#include "ir/graph.h"

namespace fusec::bench {

// As many layers as give at least `nodes` nodes.
Graph repeat_model(const Graph& block, std::uint32_t nodes);

}  // namespace fusec::bench
