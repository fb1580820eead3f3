#include "runtime/emulator/ptx_scope.h"

namespace fusec::emulator {

std::optional<std::uint32_t> find_register(const std::vector<Scope>& scopes, int from, std::string_view word) {
  std::size_t digits = word.size();
  while (digits > 0 && word[digits - 1] >= '0' && word[digits - 1] <= '9') --digits;
  const std::string_view prefix = word.substr(0, digits);
  std::uint64_t number = 0;
  const bool canonical =
      digits < word.size() && word.size() - digits <= 9 && (word.size() - digits == 1 || word[digits] != '0');
  if (canonical) {
    for (char c : word.substr(digits)) number = number * 10 + static_cast<std::uint64_t>(c - '0');
  }
  for (int scope = from; scope >= 0; scope = scopes[scope].parent) {
    const Scope& current = scopes[scope];
    if (const auto found = current.registers.find(word); found != current.registers.end()) return found->second;
    if (!canonical) continue;
    const auto range = current.register_ranges.find(prefix);
    if (range != current.register_ranges.end() && number < range->second.count) {
      return range->second.first + static_cast<std::uint32_t>(number);
    }
  }
  return std::nullopt;
}

std::uint32_t find_label(const std::vector<Scope>& scopes, int scope, std::string_view word) {
  for (; scope >= 0; scope = scopes[scope].parent) {
    const auto found = scopes[scope].labels.find(word);
    if (found != scopes[scope].labels.end()) return found->second;
  }
  return kNoLabel;
}

}  // namespace fusec::emulator
