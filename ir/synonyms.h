// What other libraries and people call the names that fusec knows: "swish" is silu, "axis" is dim.
#pragma once

#include <span>
#include <string_view>

namespace fusec {

struct Synonyms {
  std::string_view name;   // fusec's: of an op, a dtype, a key, an attribute, a target, an option or a kind of output
  std::string_view words;  // in lower case, with blanks between them
};

std::span<const Synonyms> synonyms();

// The candidate that is called `word` elsewhere: in capitals, with a library's prefix ("aten.relu.default"), or by a
// synonym. "" where there is none.
std::string_view name_by_synonym(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace fusec
