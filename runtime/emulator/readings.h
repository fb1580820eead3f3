// Who has read a word of shared memory since it was last written.
//
// Readers may be released apart, one through this mbarrier or flag and one through that, so each keeps the time of its
// own reading: one time for all would be the latest, which those who read earlier have not released.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace fusec::emulator {

// What lanes of one warp have read at one time. A block of the cluster counts as one lane.
struct Reading {
  std::uint32_t time = 0;
  std::uint32_t lanes = 0;  // 0: nobody
  std::uint32_t next = 0;   // in Readings; 0: the last one
  std::uint8_t reader = 0;  // a warp, or kRemoteReader + a block's rank
  std::uint8_t bytes = 0;   // of the word, a bit each

  bool is(std::uint8_t by, std::uint32_t at, std::uint8_t mask) const {
    return reader == by && time == at && bytes == mask;
  }
};
inline constexpr std::uint8_t kRemoteReader = 32;

// The readings of a block's words beyond each word's first, which lies in the word itself.
class Readings {
 public:
  void clear(Reading& first) {
    while (first.next != 0) free_next(first.next);
    first = {};
  }

  // Takes out every reading of which `drop` says so; it may also take lanes away.
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

  // Makes that reading the first one, with no lanes where it is new.
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
