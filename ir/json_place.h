// Where in JSON text an element stands that a JSON pointer (RFC 6901) names. The reader keeps no positions: they would
// cost every model memory and time. Only when an error is shown is the text gone through again, up to the element.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fusec {

struct JsonPlace {
  std::size_t begin = 0, end = 0;          // the value's bytes
  std::size_t key_begin = 0, key_end = 0;  // with its quotes, of an object's member; else empty
};

// Pointers are those that JsonDocument makes. Where the text has no such element, the deepest that it has on the way.
JsonPlace find_in_json(std::string_view text, std::string_view pointer);

// What to point at where an error found these words: the member's key, where they are the key, else its value.
JsonPlace fault_in_json(std::string_view text, std::string_view pointer, std::string_view found);

// "node \"act\"", for a pointer into an element of the model that has a name; "" elsewhere.
std::string named_element(std::string_view text, std::string_view pointer);

}  // namespace fusec
