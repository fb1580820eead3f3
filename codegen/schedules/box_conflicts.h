// How often threads that read a box of points from shared memory (codegen/schedules/box_tiles) want different words of
// one bank.
#pragma once

#include <array>
#include <vector>

#include "codegen/schedules/box_tiles.h"

namespace fusec {

// An access of a warp to a box: every lane's element along each of the box's axes, and how many bytes behind that it
// is.
struct BoxAccess {
  static constexpr int kLanes = 32;
  std::vector<int> elements;  // of lane after lane, of each axis
  std::array<int, kLanes> behind{};
  std::array<bool, kLanes> there{};
};

// Some of those that read it for words of the result, whose elements have so many bits.
std::vector<BoxAccess> reading_accesses(const BoxTiles& tiles, int result_bits);
// Some of those that write a load's pieces of so many bytes, or elements of smaller ones.
std::vector<BoxAccess> writing_accesses(const BoxWalk& walk, const std::vector<TiledAxis>& axes, int element_bits,
                                        int piece);

// For each access of so many bytes to a lane, where an axis' elements are `places` bytes apart, or less than none.
double conflicts_of(const std::vector<int>& places, const std::vector<BoxAccess>& accesses, int bytes);

}  // namespace fusec
