// Where few rows look at many keys (decoding), several blocks share the keys of a row, and a second kernel combines
// what they leave; where weights are stored as well, its blocks share the keys, too. Into how many shares the keys go
// is decided here, for the schedule and for what is predicted of it. Of keys that only a launch counts there are as
// many shares as it has work for, up to a number that is known: each is a tile or two at least.
#pragma once

#include <cstdint>

#include "schedule/attention/attention_form.h"
#include "schedule/attention/attention_tiles.h"
#include "schedule/target/target.h"

namespace fusec {

inline constexpr std::int64_t kKeyHeadroom = 8;  // times those that are expected: for so many there is room as well

struct KeySplits {
  int most = 1;       // 1 where each block walks over all keys; else so many that the launch more is worth it
  int min_tiles = 1;  // of a share
};
KeySplits split_keys(const Attention& form, const AttentionTiles& tiles, const Target& target);
// Those of the keys that are expected.
int expected_splits(const Attention& form, const AttentionTiles& tiles, const Target& target);

}  // namespace fusec
