// Names of other libraries for what fusec knows: "swish" is silu, "axis" is dim. For "did you mean" in messages.
#pragma once

#include <span>
#include <string_view>

namespace fusec {

struct Synonyms {
  std::string_view name;   // fusec's name of an op, dtype, key, attribute, target, option or kind of output
  std::string_view words;  // other names, in lower case, separated by blanks
};

std::span<const Synonyms> synonyms();

// The candidate that `word` names elsewhere: in capitals, with a library's prefix ("aten.relu.default"), or by a
// synonym. "" without one.
std::string_view name_by_synonym(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace fusec
