#include "ir/json_builder.h"

#include <algorithm>

#include "ir/error.h"
#include "ir/spelling.h"

namespace fusec {

void JsonBuilder::refuse_size() const {
  throw Error(ErrorKind::kInput, {.file = file_, .what = "a JSON text of more than 2^32 - 2 values"});
}

void JsonBuilder::refuse_depth() const {
  throw Error(ErrorKind::kInput, {.file = file_,
                                  .pointer = pointer_to_last(),
                                  .what = "nested too deep",
                                  .found = "more than 256 levels",
                                  .expected = "at most 256"});
}

void JsonBuilder::refuse_repeated_keys(std::uint32_t object) {
  const std::uint32_t end = last() + 1;
  keys_.clear();
  for (std::uint32_t v = object + 1; v < end; v = document_.values_[v].end)
    keys_.push_back({document_.values_[v].key, v});
  if (keys_.size() < 2) return;
  std::sort(keys_.begin(), keys_.end());
  std::uint32_t repeated = end;  // the earliest in the file
  for (std::size_t i = 1; i < keys_.size(); ++i)
    if (keys_[i].first == keys_[i - 1].first) repeated = std::min(repeated, keys_[i].second);
  if (repeated == end) return;
  throw Error(ErrorKind::kInput, {.file = file_,
                                  .pointer = document_.pointer_to(repeated),
                                  .what = "a key stands twice in one object",
                                  .found = in_quotes(document_.strings_[document_.values_[repeated].key]),
                                  .expected = "each key once"});
}

}  // namespace fusec
