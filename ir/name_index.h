// A hash table that finds nodes or values of a graph by name. It stores only their numbers, in about twice as many
// slots; the caller passes a function that returns the name of a number. So names are not stored twice, and not hashed
// again when nodes are renumbered.
#pragma once

#include <bit>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "ir/large_vector.h"

namespace fusec {

class NameIndex {
 public:
  static constexpr std::uint32_t kAbsent = 0xffffffffu;

  void reserve(std::size_t count) {
    if (4 * count > 3 * slots_.size()) grow(std::bit_ceil(2 * count + 2));
  }

  // The number with this name, kAbsent without one. name_of(number) returns the name of a number.
  template <typename NameOf>
  std::uint32_t find(std::string_view name, NameOf name_of) const {
    if (slots_.empty()) return kAbsent;
    const std::uint32_t hash = hash_of(name);
    for (std::size_t at = hash & (slots_.size() - 1); slots_[at].number != kFree; at = (at + 1) & (slots_.size() - 1))
      if (slots_[at].hash == hash && slots_[at].number != kGone && name_of(slots_[at].number) == name)
        return slots_[at].number;
    return kAbsent;
  }

  // Returns false, and adds nothing, if the name is taken.
  template <typename NameOf>
  bool add(std::string_view name, std::uint32_t number, NameOf name_of) {
    reserve(used_ + 1);
    const std::uint32_t hash = hash_of(name);
    std::size_t at = hash & (slots_.size() - 1);
    for (; slots_[at].number != kFree; at = (at + 1) & (slots_.size() - 1))
      if (slots_[at].hash == hash && slots_[at].number != kGone && name_of(slots_[at].number) == name) return false;
    slots_[at] = {number, hash};
    ++used_;
    return true;
  }

  // Replaces every number by now[number] and removes those that become kAbsent.
  void renumber(std::span<const std::uint32_t> now) {
    for (Slot& slot : slots_) {
      if (slot.number == kFree || slot.number == kGone) continue;
      const std::uint32_t number = now[slot.number];
      slot.number = number == kAbsent ? kGone : number;
    }
  }

 private:
  static constexpr std::uint32_t kFree = 0xffffffffu, kGone = 0xfffffffeu;
  struct Slot {
    std::uint32_t number = kFree;
    std::uint32_t hash = 0;
  };

  // Spreads names that count up ("node_17") over the whole table.
  static std::uint32_t hash_of(std::string_view name) {
    return static_cast<std::uint32_t>(std::hash<std::string_view>{}(name)*0x9e3779b97f4a7c15u >> 32);
  }

  void grow(std::size_t size) {
    LargeVector<Slot> before(size);
    before.swap(slots_);
    used_ = 0;
    for (const Slot& slot : before) {
      if (slot.number == kFree || slot.number == kGone) continue;
      std::size_t at = slot.hash & (slots_.size() - 1);
      while (slots_[at].number != kFree) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = slot;
      ++used_;
    }
  }

  LargeVector<Slot> slots_;  // open addressing with linear probing
  std::size_t used_ = 0;     // slots in use, including those of removed names
};

}  // namespace fusec
