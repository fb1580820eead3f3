#include <algorithm>
#include <type_traits>

#include "transforms/patterns/pattern.h"

namespace fusec {

std::span<PatternTerm> PatternMemory::room_for(std::size_t count) {
  static_assert(std::is_trivially_destructible_v<PatternTerm>);
  auto* const room = static_cast<PatternTerm*>(memory_.allocate(count * sizeof(PatternTerm), alignof(PatternTerm)));
  std::uninitialized_default_construct_n(room, count);
  return {room, count};
}

PatternTerms PatternMemory::keep(std::span<const PatternTerm> terms) {
  if (terms.empty()) return {};
  const std::span<PatternTerm> copy = room_for(terms.size());
  std::ranges::copy(terms, copy.begin());
  return kept(copy);
}

PatternTerms PatternMemory::kept(std::span<const PatternTerm> terms) {
  PatternTerms kept;
  kept.begin_ = terms.data();
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
