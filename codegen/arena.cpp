#include "codegen/arena.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "ir/type.h"

namespace fusec {
namespace {

IndexExpr aligned(const IndexExpr& bytes, const Bounds& bounds) {
  if (proves_multiple_of(bytes, kArenaAlignment, bounds)) return bytes;
  return ceil_div(bytes, kArenaAlignment) * kArenaAlignment;
}

// Largest first, each at the lowest offset where no buffer alive at the same time lies.
void place_constant(const std::vector<ArenaRequest>& requests, const std::vector<std::int64_t>& sizes, Arena& arena) {
  std::vector<std::size_t> by_size(requests.size());
  std::iota(by_size.begin(), by_size.end(), std::size_t{0});
  std::stable_sort(by_size.begin(), by_size.end(), [&](std::size_t a, std::size_t b) { return sizes[a] > sizes[b]; });
  std::vector<std::int64_t> offsets(requests.size(), 0);
  std::vector<std::size_t> placed;  // by offset
  std::int64_t end = 0;
  for (const std::size_t r : by_size) {
    std::int64_t offset = 0;
    for (const std::size_t other : placed) {
      const bool together = requests[r].first <= requests[other].last && requests[other].first <= requests[r].last;
      if (!together) continue;
      if (offset + sizes[r] <= offsets[other]) break;
      offset = std::max(offset, offsets[other] + sizes[other]);
    }
    offsets[r] = offset;
    placed.insert(std::upper_bound(placed.begin(), placed.end(), r,
                                   [&](std::size_t a, std::size_t b) { return offsets[a] < offsets[b]; }),
                  r);
    end = std::max(end, offset + sizes[r]);
  }
  for (std::size_t r = 0; r < requests.size(); ++r) arena.offsets[r] = offsets[r];
  arena.bytes = end;
}

// In order of birth, each in a free slot that fits, else in a new one.
void place_in_slots(const std::vector<ArenaRequest>& requests, const std::vector<IndexExpr>& sizes,
                    const Bounds& bounds, Arena& arena) {
  struct Slot {
    IndexExpr bytes;
    std::uint32_t busy_until;
  };
  std::vector<Slot> slots;
  std::vector<std::size_t> slot_of(requests.size()), by_birth(requests.size());
  std::iota(by_birth.begin(), by_birth.end(), std::size_t{0});
  std::stable_sort(by_birth.begin(), by_birth.end(),
                   [&](std::size_t a, std::size_t b) { return requests[a].first < requests[b].first; });
  for (const std::size_t r : by_birth) {
    std::size_t best = slots.size();
    for (std::size_t s = 0; s < slots.size() && best == slots.size(); ++s)
      if (slots[s].busy_until < requests[r].first && slots[s].bytes == sizes[r]) best = s;
    for (std::size_t s = 0; s < slots.size() && best == slots.size(); ++s)
      if (slots[s].busy_until < requests[r].first && proves_nonnegative(slots[s].bytes - sizes[r], bounds)) best = s;
    for (std::size_t s = 0; s < slots.size() && best == slots.size(); ++s)
      if (slots[s].busy_until < requests[r].first && proves_nonnegative(sizes[r] - slots[s].bytes, bounds)) best = s;
    if (best == slots.size()) slots.push_back({sizes[r], 0});
    if (proves_nonnegative(sizes[r] - slots[best].bytes, bounds)) slots[best].bytes = sizes[r];
    slots[best].busy_until = requests[r].last;
    slot_of[r] = best;
  }
  std::vector<IndexExpr> begin;
  IndexExpr end = 0;
  for (const Slot& slot : slots) {
    begin.push_back(end);
    end += slot.bytes;
  }
  for (std::size_t r = 0; r < requests.size(); ++r) arena.offsets[r] = begin[slot_of[r]];
  arena.bytes = end;
}

std::int64_t busiest_step(const std::vector<ArenaRequest>& requests, const Bounds& bounds) {
  std::map<std::uint32_t, std::int64_t> change;
  for (const ArenaRequest& request : requests) {
    const std::int64_t bytes = value_at_hint(request.bytes, bounds.symbols);
    change[request.first] += bytes;
    change[request.last + 1] -= bytes;
  }
  std::int64_t now = 0, most = 0;
  for (const auto& [step, bytes] : change) most = std::max(most, now += bytes);
  return most;
}

}  // namespace

Arena plan_arena(const std::vector<ArenaRequest>& requests, const Bounds& bounds) {
  Arena arena;
  arena.offsets.resize(requests.size());
  arena.live_bytes = busiest_step(requests, bounds);
  std::vector<IndexExpr> sizes;
  std::vector<std::int64_t> constants;
  for (const ArenaRequest& request : requests) {
    sizes.push_back(aligned(request.bytes, bounds));
    if (const auto bytes = sizes.back().as_constant()) constants.push_back(*bytes);
  }
  if (constants.size() == sizes.size())
    place_constant(requests, constants, arena);
  else
    place_in_slots(requests, sizes, bounds, arena);
  return arena;
}

}  // namespace fusec
