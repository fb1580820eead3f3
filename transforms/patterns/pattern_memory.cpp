#include <algorithm>
#include <type_traits>

#include "transforms/patterns/pattern.h"

namespace fusec {

PatternTerms PatternMemory::keep(std::span<const PatternTerm> terms) {
  static_assert(std::is_trivially_destructible_v<PatternTerm>);
  PatternTerms kept;
  if (terms.empty()) return kept;
  auto* const copy = static_cast<PatternTerm*>(memory_.allocate(terms.size_bytes(), alignof(PatternTerm)));
  std::ranges::uninitialized_copy(terms, std::span(copy, terms.size()));
  kept.begin_ = copy;
  kept.size_ = static_cast<std::uint32_t>(terms.size());
  for (const PatternTerm& term : terms) {
    kept.count_in_all_ += 1 + term.operands.count_in_all_;
    kept.depth_ = std::max(kept.depth_, 1 + term.operands.depth_);
  }
  return kept;
}

std::span<const PatternAttribute> PatternMemory::keep(std::vector<PatternAttribute> attributes) {
  if (attributes.empty()) return {};
  return attributes_.emplace_back(std::move(attributes));
}

std::string_view PatternMemory::keep(std::string_view word) {
  auto* const copy = static_cast<char*>(memory_.allocate(word.size(), 1));
  std::ranges::copy(word, copy);
  return {copy, word.size()};
}

}  // namespace fusec
