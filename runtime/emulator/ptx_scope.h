// The scopes of a function: the names declared in each block of braces.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace fusec::emulator {

inline constexpr std::uint32_t kNoLabel = 0xffffffffu;

// Names declared in one block of braces. Labels may be used before their declaration, so the parser resolves them at
// the end of the function, from the scope of the use outwards.
struct Scope {
  int parent = -1;
  std::unordered_map<std::string_view, std::uint32_t> registers;
  struct Range {
    std::uint32_t first, count;
  };
  std::unordered_map<std::string_view, Range> register_ranges;  // "%r" of %r<5>
  std::unordered_map<std::string_view, std::uint32_t> variables;
  std::unordered_map<std::string_view, std::uint32_t> labels;
  std::map<std::string_view, std::vector<std::string_view>> label_lists;  // .branchtargets
};

// Both search scope `from` first, then the enclosing scopes.
std::optional<std::uint32_t> find_register(const std::vector<Scope>& scopes, int from, std::string_view word);
std::uint32_t find_label(const std::vector<Scope>& scopes, int from, std::string_view word);

}  // namespace fusec::emulator
