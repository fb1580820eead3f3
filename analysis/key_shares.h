// Where few rows look at many keys (decoding), several blocks share the keys of a row, and a second kernel combines
// what they leave; where weights are stored as well, its blocks share the keys, too. Into how many shares the keys go is
// decided here, for the schedule and for what is predicted of it.
#pragma once

#include <cstdint>

#include "analysis/attention_form.h"
#include "analysis/target.h"
#include "ir/graph.h"

namespace fusec {

// What a block holds of queries and keys at a time; the bytes of a key together with its value.
struct KeyTiles {
  std::int64_t rows = 64, keys = 64;
  double bytes_of_key = 256;
};

// 1 where each block walks over all keys; else so many that the launch more is predicted to be worth it.
int shares_of_keys(const Attention& form, const Graph& graph, const KeyTiles& tiles, const Target& target);

}  // namespace fusec
