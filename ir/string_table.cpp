#include "ir/string_table.h"

#include <functional>

namespace fusec {

std::size_t StringTable::slot_of(std::string_view text) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = std::hash<std::string_view>{}(text)&mask;
  while (slots_[slot] != kNoString && (*this)[slots_[slot]] != text) slot = (slot + 1) & mask;
  return slot;
}

void StringTable::grow() {
  slots_.assign(slots_.empty() ? 64 : slots_.size() * 2, kNoString);
  for (StringId id = 0; id < size(); ++id) slots_[slot_of((*this)[id])] = id;
}

StringId StringTable::intern(std::string_view text) {
  if (2 * (size() + 1) > slots_.size()) grow();
  const std::size_t slot = slot_of(text);
  if (slots_[slot] != kNoString) return slots_[slot];
  const auto id = static_cast<StringId>(size());
  bytes_.insert(bytes_.end(), text.begin(), text.end());
  begin_.push_back(bytes_.size());
  return slots_[slot] = id;
}

StringId StringTable::find(std::string_view text) const {
  return slots_.empty() ? kNoString : slots_[slot_of(text)];
}

}  // namespace fusec
