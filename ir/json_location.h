// The place in JSON text of the element that a JSON pointer (RFC 6901) names. The reader keeps no positions, which
// would cost every model memory and time. Showing an error scans the text once more.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fusec {

struct JsonLocation {
  std::size_t begin = 0, end = 0;          // the value's bytes
  std::size_t key_begin = 0, key_end = 0;  // with its quotes, of an object's member; else empty
};

// `pointer` is one that JsonDocument made. Without that element in the text: the deepest element on the way to it.
JsonLocation find_in_json(std::string_view text, std::string_view pointer);

// The place to show for an error that found these words: the member's key if they are the key, else its value.
JsonLocation fault_in_json(std::string_view text, std::string_view pointer, std::string_view found);

// "node \"act\"", for a pointer into a named element of the model; "" for others.
std::string named_element(std::string_view text, std::string_view pointer);

}  // namespace fusec
