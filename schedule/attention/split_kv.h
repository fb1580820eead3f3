// Decides split-KV. Where few rows attend to many keys (decoding), several blocks split the keys of a row, and the last
// one to finish combines their results. Outputs of single keys (weights) need a second kernel. If the number of keys is
// known only at launch, each launch uses as many splits as it has work for, up to a maximum. Schedule and cost model
// both use this decision.
#pragma once

#include <cstdint>

#include "schedule/attention/attention_form.h"
#include "schedule/attention/attention_tiles.h"
#include "schedule/target/target.h"

namespace fusec {

inline constexpr std::int64_t kKeyHeadroom = 8;  // times the expected keys: scratch memory suffices for that many

struct KeySplits {
  int most = 1;       // most splits; 1: each block loops over all keys
  int min_tiles = 1;  // least tiles of keys per split
};
inline int launches_of_splits(const Attention& form) {
  return form.extra_outputs.empty() ? 1 : 2;
}
KeySplits split_keys(const Attention& form, const AttentionTiles& tiles, const Target& target);
// Returns the number of splits for the expected keys.
int expected_splits(const Attention& form, const AttentionTiles& tiles, const Target& target);

}  // namespace fusec
