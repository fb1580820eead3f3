// SHA-256 (FIPS 180-4), for cache keys by content and for checksums.
#pragma once

#include <string>
#include <string_view>

namespace fusec {

// The digest, 32 bytes (not hexadecimal).
std::string sha256(std::string_view text);

}  // namespace fusec
