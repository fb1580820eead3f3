// Finds repeated blocks in a list of items, such as the layers of a model: consecutive copies of one sequence of items
// that do the same work and are wired alike.
//
//   items    a  x y z  x y z  x y z  b        one block: first 1, length 3, count 3
//
// 1. Candidates are all maximal periodic runs of `kinds`, found by Main and Lorentz: split the list in halves, find the
// runs across the middle with Z functions, recurse into both halves.
// 2. Of overlapping runs the one that folds away more items wins; the rest of the other run stays a candidate.
// 3. A run is cut where two copies are wired differently. The first copy may read values from outside the block where
// later copies read them from the previous copy.
// 4. The same search runs inside the first copy of each block.
//
// The total time is O(n log n) for n items.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fusec {

inline constexpr std::uint32_t kOutside = 0xffffffffu;

struct BlockItems {
  std::vector<std::uint32_t> kinds;          // by item: equal numbers mean equal work
  std::vector<std::uint32_t> operand_begin;  // kinds.size() + 1 offsets into `operands`
  // Indices of earlier items, in an order that equal kinds share; kOutside: not an item.
  std::vector<std::uint32_t> operands;

  std::span<const std::uint32_t> operands_of(std::uint32_t item) const {
    return {operands.data() + operand_begin[item], operands.data() + operand_begin[item + 1]};
  }
};

struct RepeatedBlock {
  std::uint32_t first = 0;                 // index of the first item of the first copy
  std::uint32_t length = 0;                // items per copy
  std::uint32_t count = 0;                 // copies, at least 2
  std::vector<RepeatedBlock> inside = {};  // blocks within the first copy

  std::uint32_t end() const { return first + length * count; }
  friend bool operator==(const RepeatedBlock&, const RepeatedBlock&) = default;
};

// Returns the blocks in order. They do not overlap.
std::vector<RepeatedBlock> repeated_blocks(const BlockItems& items);

}  // namespace fusec
