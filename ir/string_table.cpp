#include "ir/string_table.h"

#include <functional>
#include <utility>

namespace fusec {
namespace {

std::uint32_t hash_of(std::string_view text) {
  return static_cast<std::uint32_t>(std::hash<std::string_view>{}(text));
}

}  // namespace

std::size_t StringTable::slot_of(std::string_view text, std::uint32_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash & mask;
  while (slots_[slot].id != kNoString && (slots_[slot].hash != hash || (*this)[slots_[slot].id] != text))
    slot = (slot + 1) & mask;
  return slot;
}

void StringTable::grow() {
  const std::vector<Slot> before = std::move(slots_);
  slots_.assign(before.empty() ? 64 : before.size() * 2, Slot{});
  const std::size_t mask = slots_.size() - 1;
  for (const Slot& taken : before) {
    if (taken.id == kNoString) continue;
    std::size_t slot = taken.hash & mask;
    while (slots_[slot].id != kNoString) slot = (slot + 1) & mask;
    slots_[slot] = taken;
  }
}

StringId StringTable::intern(std::string_view text) {
  if (2 * (size() + 1) > slots_.size()) grow();
  const std::uint32_t hash = hash_of(text);
  const std::size_t slot = slot_of(text, hash);
  if (slots_[slot].id != kNoString) return slots_[slot].id;
  const auto id = static_cast<StringId>(size());
  bytes_.insert(bytes_.end(), text.begin(), text.end());
  begin_.push_back(bytes_.size());
  slots_[slot] = {id, hash};
  return id;
}

StringId StringTable::find(std::string_view text) const {
  return slots_.empty() ? kNoString : slots_[slot_of(text, hash_of(text))].id;
}

}  // namespace fusec
