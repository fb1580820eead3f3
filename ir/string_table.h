// Stores each distinct string once and numbers them in order of arrival. The model reader names operands by these
// numbers, so every name is hashed once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fusec {

using StringId = std::uint32_t;
inline constexpr StringId kNoString = 0xffffffffu;

class StringTable {
 public:
  StringId intern(std::string_view text);
  StringId find(std::string_view text) const;  // kNoString if it is not stored
  std::string_view operator[](StringId id) const {
    return {bytes_.data() + begin_[id], bytes_.data() + begin_[id + 1]};
  }
  std::size_t size() const { return begin_.size() - 1; }

 private:
  // `hash` is part of the string's hash. Strings are compared only if it agrees, which saves cache misses.
  struct Slot {
    StringId id = kNoString;
    std::uint32_t hash = 0;
  };
  // The slot that holds the text, or the free slot where it belongs.
  std::size_t slot_of(std::string_view text, std::uint32_t hash) const;
  void grow();

  std::vector<char> bytes_;
  std::vector<std::uint64_t> begin_{0};  // size() + 1
  std::vector<Slot> slots_;              // open addressing, a power of two, at most half full
};

}  // namespace fusec
