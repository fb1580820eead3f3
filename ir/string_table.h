// Strings stored once each and numbered in order of arrival: a million nodes name their operands by these numbers, so
// that every name is hashed once.
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
  StringId find(std::string_view text) const;  // kNoString where it is not there
  std::string_view operator[](StringId id) const {
    return {bytes_.data() + begin_[id], bytes_.data() + begin_[id + 1]};
  }
  std::size_t size() const { return begin_.size() - 1; }

 private:
  // With a part of the hash: strings are looked at (each a miss of the cache or two) only where that agrees.
  struct Slot {
    StringId id = kNoString;
    std::uint32_t hash = 0;
  };
  // The slot that holds the text, or the free one where it belongs.
  std::size_t slot_of(std::string_view text, std::uint32_t hash) const;
  void grow();

  std::vector<char> bytes_;
  std::vector<std::uint64_t> begin_{0};  // size() + 1
  std::vector<Slot> slots_;              // open addressing, a power of two, at most half full
};

}  // namespace fusec
