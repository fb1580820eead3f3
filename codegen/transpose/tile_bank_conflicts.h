// How often threads that read a box of points from shared memory (codegen/transpose/tiled_permute) want different words
// of one bank.
#pragma once

#include <array>
#include <vector>

#include "codegen/transpose/tiled_permute.h"

namespace fusec {

// An access of a warp to a box: every lane's element along each of the box's axes, and how many bytes behind that it
// is.
struct TileAccess {
  static constexpr int kLanes = 32;
  std::vector<int> elements;  // of lane after lane, of each axis
  std::array<int, kLanes> byte_offset{};
  std::array<bool, kLanes> active{};
};

// Some of those that read it for words of the result, whose elements have so many bits.
std::vector<TileAccess> reading_accesses(const TiledPermute& tiles, int result_bits);
// Some of those that write a load's pieces of so many bytes, or elements of smaller ones.
std::vector<TileAccess> writing_accesses(const TileLayout& layout, const std::vector<TiledAxis>& axes, int element_bits,
                                         int piece);

// For each access of so many bytes to a lane, where an axis' elements are `places` bytes apart, or less than none.
double conflicts_of(const std::vector<int>& places, const std::vector<TileAccess>& accesses, int bytes);

}  // namespace fusec
