#include "codegen/transpose/tile_bank_conflicts.h"

#include <algorithm>

#include "schedule/layout/memory_access.h"

namespace fusec {
namespace {

constexpr std::int64_t kWarps = 6;  // that are looked at

// The lane's element along some of the axes, the fastest first, by its number among all of them.
void find_elements(const std::vector<std::size_t>& along, const std::vector<TiledAxis>& axes, std::int64_t number,
                   int* elements) {
  for (const std::size_t i : along) {
    elements[i] = static_cast<int>(number % axes[i].extent);
    number /= axes[i].extent;
  }
}

// The items of some warps: `add` is called with each one's warp, lane and number.
template <class Add>
void over_sampled_items(std::int64_t items, Add add) {
  const std::int64_t warps = (items + TileAccess::kLanes - 1) / TileAccess::kLanes, seen = std::min(kWarps, warps);
  for (std::int64_t warp = 0; warp < seen; ++warp)
    for (int lane = 0; lane < TileAccess::kLanes; ++lane)
      if (const std::int64_t item = warp * warps / seen * TileAccess::kLanes + lane; item < items)
        add(static_cast<std::size_t>(warp), static_cast<std::size_t>(lane), item);
}

std::vector<TileAccess> empty_accesses(std::int64_t items, int each, std::size_t axes) {
  const std::int64_t warps = (items + TileAccess::kLanes - 1) / TileAccess::kLanes;
  std::vector<TileAccess> accesses(static_cast<std::size_t>(std::min(kWarps, warps) * each));
  for (TileAccess& access : accesses) access.elements.resize(TileAccess::kLanes * axes, 0);
  return accesses;
}

}  // namespace

std::vector<TileAccess> reading_accesses(const TiledPermute& tiles, int result_bits) {
  const TileLayout& layout = tiles.stored;
  const int each = elements_of_word(result_bits), bytes = result_bits / 8;
  const int words = line_bytes(layout, tiles.axes, result_bits) / std::max(4, bytes);
  const std::int64_t run = run_elements(layout, tiles.axes), lines = line_count(layout, tiles.axes);
  const TileThreadMap order = thread_map_for(lines, words, tiles.threads, layout.lanes);
  const std::int64_t items =
      layout.lanes == 0 ? lines * words
                        : ceil_quotient(lines, order.lines_at_once()) * order.iterations_of_line() * tiles.threads;
  // Elements that the line begins behind the multiple of `from` that threads take it from; of the lines of a warp, as
  // far apart as in memory.
  const auto skew_of = [&](const int* elements) {
    if (layout.aligned >= layout.from) return 0;
    if (layout.lanes == 0) return layout.from / 2 / bytes;
    std::int64_t place = 0;
    for (const std::size_t i : layout.lines) place += layout.strides[i] * elements[i];
    return static_cast<int>(place * bytes % layout.from) / bytes;
  };
  std::vector<TileAccess> accesses = empty_accesses(items, each, tiles.axes.size());
  over_sampled_items(items, [&](std::size_t warp, std::size_t lane, std::int64_t number) {
    const TileItem item = layout.lanes == 0
                              ? TileItem{.line = number / words, .place = static_cast<int>(number % words)}
                              : item_at(order, number);
    for (int e = 0; e < each && item.line < lines; ++e) {
      TileAccess& access = accesses[warp * static_cast<std::size_t>(each) + static_cast<std::size_t>(e)];
      int* const elements = access.elements.data() + lane * tiles.axes.size();
      find_elements(layout.lines, tiles.axes, item.line, elements);
      const std::int64_t at = std::int64_t{item.place} * each + e - skew_of(elements);
      if (at < 0 || at >= run) continue;
      access.active[lane] = true;
      find_elements(layout.run, tiles.axes, at, elements);
    }
  });
  return accesses;
}

std::vector<TileAccess> writing_accesses(const TileLayout& layout, const std::vector<TiledAxis>& axes, int element_bits,
                                         int piece) {
  const int each = piece == 4 ? elements_of_word(element_bits) : 1, bytes = element_bits / 8;
  const int pieces = line_bytes(layout, axes, element_bits) / piece,
            skew = layout.aligned < layout.from ? layout.from / 2 : 0;
  const std::int64_t run = run_elements(layout, axes) * bytes, items = line_count(layout, axes) * pieces;
  std::vector<TileAccess> accesses = empty_accesses(items, each, axes.size());
  over_sampled_items(items, [&](std::size_t warp, std::size_t lane, std::int64_t item) {
    for (int e = 0; e < each; ++e) {
      TileAccess& access = accesses[warp * static_cast<std::size_t>(each) + static_cast<std::size_t>(e)];
      const auto byte_offset = static_cast<int>(item % pieces) * piece + e * bytes - skew;
      access.active[lane] = byte_offset > -piece && byte_offset < run;
      access.byte_offset[lane] = std::max(0, byte_offset);
      find_elements(layout.lines, axes, item / pieces, access.elements.data() + lane * axes.size());
    }
  });
  return accesses;
}

double conflicts_of(const std::vector<int>& places, const std::vector<TileAccess>& accesses, int bytes) {
  constexpr std::int64_t kFirst = 1 << 24;  // as far behind as elements of an axis that goes backwards may be before it
  int conflicts = 0;
  for (const TileAccess& access : accesses) {
    std::array<std::int64_t, TileAccess::kLanes> addresses;
    for (std::size_t lane = 0; lane < addresses.size(); ++lane) {
      addresses[lane] = access.active[lane] ? kFirst + access.byte_offset[lane] : kIdleLane;
      for (std::size_t i = 0; i < places.size() && access.active[lane]; ++i)
        addresses[lane] += std::int64_t{access.elements[lane * places.size() + i]} * places[i];
    }
    conflicts += count_bank_conflicts(addresses, bytes);
  }
  return conflicts / static_cast<double>(accesses.size());
}

}  // namespace fusec
