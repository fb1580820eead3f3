// Repeated blocks of a list of items, such as the layers of a model: stretches that follow one another, do the same work
// and are wired alike.
//
//   items    a  x y z  x y z  x y z  b        one block: first 1, length 3, count 3
//
// 1. Candidates are all maximal runs of `kinds` (stretches with a period), by Main and Lorentz: halve the list, find the
//    runs across the middle with Z functions, go on in both halves.
// 2. Of runs that overlap the one that folds away more items is kept, the rest of the other may still be one.
// 3. A run is cut where two copies are not wired alike. The first copy may read from anywhere what the next ones read
//    from the copy before.
// 4. Within the first copy of a block the same is done again.
//
// In all n log n for n items.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fusec {

inline constexpr std::uint32_t kOutside = 0xffffffffu;

struct BlockItems {
  std::vector<std::uint32_t> kinds;          // equal numbers: equal work
  std::vector<std::uint32_t> operand_begin;  // kinds.size() + 1 places in `operands`
  std::vector<std::uint32_t> operands;       // earlier items, in an order that equal kinds share; kOutside: no item

  std::span<const std::uint32_t> operands_of(std::uint32_t item) const {
    return {operands.data() + operand_begin[item], operands.data() + operand_begin[item + 1]};
  }
};

struct RepeatedBlock {
  std::uint32_t first = 0;   // item with which the first copy begins
  std::uint32_t length = 0;  // items of one copy
  std::uint32_t count = 0;   // copies, at least 2
  std::vector<RepeatedBlock> inside = {};  // of the first copy

  std::uint32_t end() const { return first + length * count; }
  friend bool operator==(const RepeatedBlock&, const RepeatedBlock&) = default;
};

// In order; blocks do not overlap.
std::vector<RepeatedBlock> repeated_blocks(const BlockItems& items);

}  // namespace fusec
