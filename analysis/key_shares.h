// Where few rows look at many keys (decoding), several blocks share the keys of a row, and a second kernel combines
// what they leave; where weights are stored as well, its blocks share the keys, too. Into how many shares the keys go
// is decided here, for the schedule and for what is predicted of it.
#pragma once

#include "analysis/attention_form.h"
#include "analysis/attention_tiles.h"
#include "analysis/target.h"
#include "ir/graph.h"

namespace fusec {

// 1 where each block walks over all keys; else so many that the launch more is predicted to be worth it.
int shares_of_keys(const Attention& form, const Graph& graph, const AttentionTiles& tiles, const Target& target);

}  // namespace fusec
