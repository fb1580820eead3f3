// Combines hashes of several values into one that depends on all of them and on their order.
#pragma once

#include <cstddef>

namespace fusec {

inline std::size_t hash_mix(std::size_t seed, std::size_t value) {
  return seed ^ (value + 0x9e3779b97f4a7c15ull + (seed << 6) + (seed >> 2));
}

}  // namespace fusec
