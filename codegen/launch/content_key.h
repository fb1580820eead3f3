// A name for a text by its content: 32 hexadecimal digits, the same on every machine.
#pragma once

#include <string>
#include <string_view>

namespace fusec {

std::string content_key(std::string_view text);

}  // namespace fusec
