// Finds the nodes, or the values, of a graph by name. Only numbers are kept, in a table of about twice their count:
// what a number is called is asked of whoever has the list, so that a million names are neither stored twice nor hashed
// again when nodes change their places.
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

  // The number of this name, kAbsent where there is none; name_of(number) is what it is called.
  template <typename NameOf>
  std::uint32_t find(std::string_view name, NameOf name_of) const {
    if (slots_.empty()) return kAbsent;
    const std::uint32_t hash = hash_of(name);
    for (std::size_t at = hash & (slots_.size() - 1); slots_[at].number != kFree; at = (at + 1) & (slots_.size() - 1))
      if (slots_[at].hash == hash && slots_[at].number != kGone && name_of(slots_[at].number) == name)
        return slots_[at].number;
    return kAbsent;
  }

  // False, and nothing is added, where there is one of this name.
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

  // Every number becomes now[number]; those that become kAbsent go.
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

  // Names that count up ("node_17") are spread over the whole table.
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

  LargeVector<Slot> slots_;  // each at the first free place from that of its hash on
  std::size_t used_ = 0;     // slots, with those of names that went
};

}  // namespace fusec
