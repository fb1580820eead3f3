// Who has read a word of shared memory since its last write.
//
// Each reader keeps its own time, since readers may be released separately, through different mbarriers or flags. One
// time for all would be the latest, which earlier readers have not released.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace fusec::emulator {

// What lanes of one warp have read at one time. A block of the cluster counts as one lane.
struct Reading {
  std::uint32_t time = 0;
  std::uint32_t lanes = 0;  // mask; 0: no reading
  std::uint32_t next = 0;   // index in Readings of the next reading; 0: none
  std::uint8_t reader = 0;  // a warp, or kRemoteReader + a block's rank
  std::uint8_t bytes = 0;   // of the word, one bit per byte

  bool is(std::uint8_t by, std::uint32_t at, std::uint8_t mask) const {
    return reader == by && time == at && bytes == mask;
  }
};
inline constexpr std::uint8_t kRemoteReader = 32;

// The readings of a block's words: linked lists in one array. Each list's first reading is stored in its SharedWord.
class Readings {
 public:
  void clear(Reading& first) {
    while (first.next != 0) free_next(first.next);
    first = {};
  }

  // Removes every reading for which `drop` returns true. `drop` may also remove lanes from a reading.
  template <class Drop>
  void drop(Reading& first, const Drop& drop) {
    std::uint32_t* link = &first.next;
    while (*link != 0) {
      if (drop(nodes_[*link]))
        free_next(*link);
      else
        link = &nodes_[*link].next;
    }
    if (!drop(first)) return;
    const std::uint32_t next = first.next;
    if (next == 0) {
      first = {};
    } else {
      first = nodes_[next];
      put_back(next);
    }
  }

  // Moves the reading with these values to the front, or inserts a new one without lanes.
  void bring_forward(Reading& first, std::uint8_t reader, std::uint32_t time, std::uint8_t bytes) {
    for (std::uint32_t at = first.next; at != 0; at = nodes_[at].next) {
      if (!nodes_[at].is(reader, time, bytes)) continue;
      std::swap(first, nodes_[at]);
      std::swap(first.next, nodes_[at].next);
      return;
    }
    const std::uint32_t next = first.lanes == 0 ? 0 : keep(first);
    first = {.time = time, .next = next, .reader = reader, .bytes = bytes};
  }

  template <class Visit>
  void each(const Reading& first, const Visit& visit) const {
    if (first.lanes == 0) return;
    visit(first);
    for (std::uint32_t at = first.next; at != 0; at = nodes_[at].next) visit(nodes_[at]);
  }

 private:
  std::uint32_t keep(const Reading& reading) {
    if (free_ == 0) {
      nodes_.push_back(reading);
      return static_cast<std::uint32_t>(nodes_.size()) - 1;
    }
    const std::uint32_t at = free_;
    free_ = nodes_[at].next;
    nodes_[at] = reading;
    return at;
  }
  void put_back(std::uint32_t at) {
    nodes_[at].next = free_;
    free_ = at;
  }
  void free_next(std::uint32_t& link) {
    const std::uint32_t at = link;
    link = nodes_[at].next;
    put_back(at);
  }

  std::vector<Reading> nodes_ = std::vector<Reading>(1);
  std::uint32_t free_ = 0;
};

}  // namespace fusec::emulator
