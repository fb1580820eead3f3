#include "runtime/emulator/reconvergence.h"

namespace fusec::emulator {
namespace {

std::int32_t new_join(Warp& warp, const Join& join) {
  for (std::size_t i = 0; i < warp.joins.size(); ++i) {
    if (!warp.joins[i].used) {
      warp.joins[i] = join;
      return static_cast<std::int32_t>(i);
    }
  }
  warp.joins.push_back(join);
  return static_cast<std::int32_t>(warp.joins.size()) - 1;
}

}  // namespace

void complete_join(Warp& warp, std::int32_t index) {
  Join& join = warp.joins[static_cast<std::size_t>(index)];
  if (join.missing != 0) return;
  const Join done = join;
  join.used = false;
  if (done.arrived != 0) warp.fragments.push_back({.pc = done.pc, .lanes = done.arrived, .join = done.parent});
}

void drop_from_joins(Warp& warp, std::int32_t index, std::uint32_t lanes) {
  while (index >= 0) {
    Join& join = warp.joins[static_cast<std::size_t>(index)];
    const std::int32_t parent = join.parent;
    join.missing &= ~lanes;
    complete_join(warp, index);
    index = parent;
  }
}

bool release_joins(Warp& warp) {
  bool released = false;
  for (std::size_t i = 0; i < warp.joins.size(); ++i) {
    Join& join = warp.joins[i];
    if (!join.used || join.arrived == 0) continue;
    warp.fragments.push_back({.pc = join.pc, .lanes = join.arrived, .join = join.parent});
    join.arrived = 0;
    released = true;
  }
  return released;
}

void diverge(Warp& warp, Fragment& fragment, std::uint32_t taken, std::uint32_t target, std::uint32_t meet) {
  if (meet != kNoReconvergence &&
      !(fragment.join >= 0 && warp.joins[static_cast<std::size_t>(fragment.join)].pc == meet)) {
    fragment.join =
        new_join(warp, {.pc = meet, .missing = fragment.lanes, .arrived = 0, .parent = fragment.join, .used = true});
  }
  fragment.lanes &= ~taken;
  Fragment other{.pc = target, .lanes = taken, .join = fragment.join};
  warp.fragments.push_back(other);
}

}  // namespace fusec::emulator
