// SHA-256 (FIPS 180-4): a key by content that nobody can make two texts for, and a checksum that finds every damage.
#pragma once

#include <string>
#include <string_view>

namespace fusec {

// 32 bytes.
std::string sha256(std::string_view text);

}  // namespace fusec
