// The names that a function declares, by the braces they stand between.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace fusec::emulator {

inline constexpr std::uint32_t kNoLabel = 0xffffffffu;

// Names declared between two braces. Labels may be used before they are declared, so they are resolved at the end of
// the function, walking outwards from the scope of the use.
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

// Both look in scope `from` first, then in those around it.
std::optional<std::uint32_t> find_register(const std::vector<Scope>& scopes, int from, std::string_view word);
std::uint32_t find_label(const std::vector<Scope>& scopes, int from, std::string_view word);

}  // namespace fusec::emulator
