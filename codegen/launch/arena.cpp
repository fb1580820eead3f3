#include "codegen/launch/arena.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "ir/budget.h"
#include "ir/type.h"

namespace fusec {
namespace {

IndexExpr aligned(const IndexExpr& bytes, const Bounds& bounds) {
  if (proves_multiple_of(bytes, kArenaAlignment, bounds)) return bytes;
  return ceil_div(bytes, kArenaAlignment) * kArenaAlignment;
}

bool are_alive_together(const ArenaRequest& a, const ArenaRequest& b) {
  return a.first <= b.last && b.first <= a.last;
}

struct Layout {
  std::vector<std::int64_t> offsets;
  std::int64_t bytes = 0;
};

// Places buffers in the given order, each at the lowest offset free during its lifetime.
Layout place_in_order(const std::vector<ArenaRequest>& requests, const std::vector<std::int64_t>& sizes,
                      const std::vector<std::size_t>& order) {
  Layout layout;
  layout.offsets.resize(requests.size(), 0);
  std::vector<std::size_t> placed;  // by offset
  for (const std::size_t r : order) {
    count_step();
    std::int64_t offset = 0;
    for (const std::size_t other : placed) {
      if (!are_alive_together(requests[r], requests[other])) continue;
      if (offset + sizes[r] <= layout.offsets[other]) break;
      offset = std::max(offset, layout.offsets[other] + sizes[other]);
    }
    layout.offsets[r] = offset;
    placed.insert(std::upper_bound(placed.begin(), placed.end(), r,
                                   [&](std::size_t a, std::size_t b) { return layout.offsets[a] < layout.offsets[b]; }),
                  r);
    layout.bytes = std::max(layout.bytes, offset + sizes[r]);
  }
  return layout;
}

// The best of several orders: largest first, longest-lived first, order of creation.
Layout best_layout(const std::vector<ArenaRequest>& requests, const std::vector<std::int64_t>& sizes) {
  constexpr std::size_t kMostForAllOrders = 4000;
  const auto life = [&](std::size_t r) { return requests[r].last - requests[r].first; };
  std::vector<std::size_t> order(requests.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto by_birth = order;
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t r) { return sizes[r]; });
  Layout best = place_in_order(requests, sizes, order);
  if (requests.size() > kMostForAllOrders) return best;
  const auto attempt = [&] {
    Layout layout = place_in_order(requests, sizes, order);
    if (layout.bytes < best.bytes) best = std::move(layout);
  };
  std::ranges::stable_sort(order, std::greater<>(), life);
  attempt();
  order = by_birth;
  std::ranges::stable_sort(order, {}, [&](std::size_t r) { return requests[r].first; });
  attempt();
  return best;
}

void place_constant(const std::vector<ArenaRequest>& requests, const std::vector<std::int64_t>& sizes, Arena& arena) {
  const Layout layout = best_layout(requests, sizes);
  for (std::size_t r = 0; r < requests.size(); ++r) arena.offsets[r] = layout.offsets[r];
  arena.bytes = layout.bytes;
}

// A lower bound of e without floor divisions by constants: k * (a // k) is less than k below a.
IndexExpr at_least(const IndexExpr& e) {
  IndexExpr least = e.constant_term();
  for (const IndexTerm& term : e.terms()) {
    count_step();
    IndexExpr product = term.coefficient;
    const auto atom = term.factors.size() == 1 ? term.factors[0] : nullptr;
    const auto divisor = atom && atom->kind == IndexAtom::Kind::kFloorDiv ? atom->b.as_constant() : std::nullopt;
    if (divisor && *divisor > 0 && term.coefficient % *divisor == 0)
      product = term.coefficient / *divisor * (term.coefficient > 0 ? atom->a - (*divisor - 1) : atom->a);
    else
      product = from_terms({term}, 0);
    least += product;
  }
  return least;
}

bool proves_at_least(const IndexExpr& a, const IndexExpr& b, const Bounds& bounds) {
  return proves_nonnegative(a - b, bounds) || proves_nonnegative(at_least(a - b), bounds);
}

// The maximum of several expressions. An expression is left out if another one is proven to be at least as large, or
// smaller by only a little; the other one is then increased by that amount.
class Greatest {
 public:
  explicit Greatest(const Bounds& bounds) : bounds_(bounds) {}
  void add(IndexExpr e) {
    for (const std::int64_t slack : {std::int64_t{0}, kSlack}) {
      count_step();
      for (IndexExpr& term : terms_) {
        if (!proves_at_least(term + slack, e, bounds_)) continue;
        term += slack;
        return;
      }
      const std::size_t before = terms_.size();
      std::erase_if(terms_, [&](const IndexExpr& t) { return proves_at_least(e + slack, t, bounds_); });
      if (terms_.size() == before) continue;
      e += slack;
      break;
    }
    terms_.push_back(std::move(e));
  }
  std::size_t size() const { return terms_.size(); }
  IndexExpr value() const {
    IndexExpr result = 0;
    for (std::size_t i = 0; i < terms_.size(); ++i) result = i == 0 ? terms_[i] : max(result, terms_[i]);
    return result;
  }

 private:
  static constexpr std::int64_t kSlack = 4 * kArenaAlignment;
  const Bounds& bounds_;
  std::vector<IndexExpr> terms_;
};

bool is_long(const IndexExpr& e) {
  constexpr std::size_t kLongest = 1000;
  return to_string(e, [](Variable) { return std::string("symbol"); }).size() > kLongest;
}

// Chooses the best layout at the symbols' hints and keeps its order for all other values: a buffer starts at the
// maximum end of the buffers below it that are alive at the same time. False if the expressions get too long.
bool place_as_at_hints(const std::vector<ArenaRequest>& requests, const std::vector<IndexExpr>& sizes,
                       const Bounds& bounds, Arena& arena) {
  constexpr std::size_t kMostRequests = 2000, kMostTerms = 8;
  if (requests.size() > kMostRequests) return false;
  std::vector<std::int64_t> at_hints;
  for (const IndexExpr& size : sizes) at_hints.push_back(value_at_hint(size, bounds.symbols));
  const Layout layout = best_layout(requests, at_hints);
  std::vector<std::size_t> upwards(requests.size());
  std::iota(upwards.begin(), upwards.end(), std::size_t{0});
  std::ranges::stable_sort(upwards, {}, [&](std::size_t r) { return layout.offsets[r]; });
  Greatest end(bounds);
  for (std::size_t i = 0; i < upwards.size(); ++i) {
    count_step();
    const std::size_t r = upwards[i];
    Greatest offset(bounds);
    offset.add(0);
    for (std::size_t below = 0; below < i; ++below)
      if (are_alive_together(requests[r], requests[upwards[below]]))
        offset.add(arena.offsets[upwards[below]] + sizes[upwards[below]]);
    arena.offsets[r] = offset.value();
    if (offset.size() > kMostTerms || is_long(arena.offsets[r])) return false;
    end.add(arena.offsets[r] + sizes[r]);
    if (end.size() > kMostTerms) return false;
  }
  arena.bytes = end.value();
  return true;
}

// Places buffers in order of creation, each in a free slot that fits, else in a new one.
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
    count_step();
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
    count_step();
    begin.push_back(end);
    end += slot.bytes;
  }
  for (std::size_t r = 0; r < requests.size(); ++r) arena.offsets[r] = begin[slot_of[r]];
  arena.bytes = end;
}

void place_symbolic(const std::vector<ArenaRequest>& requests, const std::vector<IndexExpr>& sizes,
                    const Bounds& bounds, Arena& arena) {
  place_in_slots(requests, sizes, bounds, arena);
  Arena other{.offsets = std::vector<IndexExpr>(requests.size())};
  if (!place_as_at_hints(requests, sizes, bounds, other)) return;
  if (value_at_hint(other.bytes, bounds.symbols) > value_at_hint(arena.bytes, bounds.symbols)) return;
  arena.offsets = std::move(other.offsets);
  arena.bytes = std::move(other.bytes);
}

std::int64_t busiest_step(const std::vector<ArenaRequest>& requests, const Bounds& bounds) {
  std::map<std::uint32_t, std::int64_t> change;
  for (const ArenaRequest& request : requests) {
    count_step();
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
    count_step();
    sizes.push_back(aligned(request.bytes, bounds));
    if (const auto bytes = sizes.back().as_constant()) constants.push_back(*bytes);
  }
  if (constants.size() == sizes.size())
    place_constant(requests, constants, arena);
  else
    place_symbolic(requests, sizes, bounds, arena);
  return arena;
}

}  // namespace fusec
