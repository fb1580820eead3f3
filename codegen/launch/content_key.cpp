#include "codegen/launch/content_key.h"

#include <fmt/format.h>

#include <cstdint>

namespace fusec {
namespace {

// FNV-1a with its own start value.
std::uint64_t hash_from(std::uint64_t start, std::string_view text) {
  std::uint64_t h = start;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return h;
}

}  // namespace

std::string content_key(std::string_view text) {
  return fmt::format("{:016x}{:016x}", hash_from(0xcbf29ce484222325ull, text), hash_from(0x9ae16a3b2f90404full, text));
}

}  // namespace fusec
