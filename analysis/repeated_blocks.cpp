#include "analysis/repeated_blocks.h"

#include <algorithm>
#include <map>
#include <optional>
#include <queue>
#include <tuple>

namespace fusec {
namespace {

using Kinds = std::vector<std::uint32_t>;

// A periodic stretch: kinds[i] == kinds[i + period] for all i >= begin with i + period < end.
struct Run {
  std::uint32_t begin, end, period;

  std::uint32_t folded() const { return end - begin < 2 * period ? 0 : (end - begin) / period * period - period; }
  friend bool operator==(const Run&, const Run&) = default;
};

// z[i] is the length of the longest common prefix of s and s[i..].
std::vector<std::uint32_t> z_function(const Kinds& s) {
  std::vector<std::uint32_t> z(s.size(), 0);
  for (std::size_t i = 1, left = 0, right = 0; i < s.size(); ++i) {
    if (i < right) z[i] = std::min(static_cast<std::uint32_t>(right - i), z[i - left]);
    while (i + z[i] < s.size() && s[z[i]] == s[i + z[i]]) ++z[i];
    if (i + z[i] > right) {
      left = i;
      right = i + z[i];
    }
  }
  return z;
}

// Returns, for each position of `text`, the length of the longest prefix of `pattern` that starts there; the entry past
// the end is 0.
std::vector<std::uint32_t> matches(const Kinds& pattern, const Kinds& text) {
  constexpr std::uint32_t kSeparator = 0xffffffffu;  // not a kind: kinds number the items
  Kinds both = pattern;
  both.push_back(kSeparator);
  both.insert(both.end(), text.begin(), text.end());
  std::vector<std::uint32_t> z = z_function(both);
  z.erase(z.begin(), z.begin() + static_cast<std::ptrdiff_t>(pattern.size()) + 1);
  z.push_back(0);
  return z;
}

Kinds reversed(Kinds s) {
  std::ranges::reverse(s);
  return s;
}

// Adds the runs of kinds[low, high) that touch its middle. Skips runs that continue beyond the range: the caller finds
// those in a larger one.
void runs_across_middle(const Kinds& kinds, std::uint32_t low, std::uint32_t high, std::vector<Run>& runs) {
  const std::uint32_t middle = low + (high - low) / 2;
  const auto at = [&](std::uint32_t i) { return kinds.begin() + static_cast<std::ptrdiff_t>(i); };
  const Kinds left(at(low), at(middle)), right(at(middle), at(high)), whole(at(low), at(high));
  const auto size_left = middle - low, size_right = high - middle;
  const auto add = [&](std::uint32_t begin, std::uint32_t end, std::uint32_t period) {
    const bool goes_on = (begin == low && low > 0) || (end == high && high < kinds.size());
    if (end - begin >= 2 * period && !goes_on) runs.push_back({begin, end, period});
  };
  // Number of equal items leftwards from the middle, and from `period` items before it.
  const std::vector<std::uint32_t> left_back = matches(reversed(left), reversed(left));
  const std::vector<std::uint32_t> right_from = matches(right, whole);
  for (std::uint32_t p = 1; p <= size_left; ++p) add(middle - p - left_back[p], middle + right_from[size_left - p], p);
  const std::vector<std::uint32_t> right_on = matches(right, right);
  const std::vector<std::uint32_t> back_from = matches(reversed(left), reversed(whole));
  for (std::uint32_t p = 1; p <= size_right; ++p) add(middle - back_from[size_right - p], middle + p + right_on[p], p);
}

// Returns each maximal run once, with its least period.
std::vector<Run> maximal_runs(const Kinds& kinds, std::uint32_t low, std::uint32_t high) {
  const Kinds part(kinds.begin() + low, kinds.begin() + high);
  std::vector<Run> runs;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> open{{0, high - low}};
  while (!open.empty()) {
    const auto [from, to] = open.back();
    open.pop_back();
    if (to - from < 2) continue;
    runs_across_middle(part, from, to, runs);
    open.emplace_back(from, from + (to - from) / 2);
    open.emplace_back(from + (to - from) / 2, to);
  }
  std::ranges::sort(runs, {}, [](const Run& r) { return std::tuple(r.begin, r.end, r.period); });
  const auto same = [](const Run& a, const Run& b) { return a.begin == b.begin && a.end == b.end; };
  runs.erase(std::unique(runs.begin(), runs.end(), same), runs.end());
  for (Run& run : runs) {
    run.begin += low;
    run.end += low;
  }
  return runs;
}

// Returns disjoint runs. Runs that fold away more items are chosen first.
std::vector<Run> best_runs(std::vector<Run> candidates) {
  const auto less = [](const Run& a, const Run& b) {
    return std::tuple(a.folded(), b.period, b.begin) < std::tuple(b.folded(), a.period, a.begin);
  };
  std::priority_queue<Run, std::vector<Run>, decltype(less)> queue(less, std::move(candidates));
  std::map<std::uint32_t, Run> taken;  // by end
  while (!queue.empty()) {
    const Run run = queue.top();
    queue.pop();
    if (run.folded() == 0) break;
    const auto other = taken.upper_bound(run.begin);
    if (other == taken.end() || other->second.begin >= run.end) {
      taken.emplace(run.end, run);
      continue;
    }
    const Run before{run.begin, std::max(run.begin, other->second.begin), run.period};
    const Run behind{std::min(run.end, other->second.end), run.end, run.period};
    for (const Run& rest : {before, behind})
      if (rest.folded() > 0) queue.push(rest);
  }
  std::vector<Run> runs;
  for (const auto& [end, run] : taken) runs.push_back(run);
  return runs;
}

// Returns whether the copy at `copy` reads its operands as the previous copy does, in a block that begins at `first`.
bool are_wired_alike(const BlockItems& items, std::uint32_t first, std::uint32_t copy, std::uint32_t length) {
  const bool is_second = copy == first + length;
  for (std::uint32_t i = copy; i < copy + length; ++i) {
    const auto here = items.operands_of(i), there = items.operands_of(i - length);
    if (here.size() != there.size()) return false;
    for (std::size_t o = 0; o < here.size(); ++o) {
      const std::uint32_t a = there[o], b = here[o];
      const bool from_outside = a == kOutside || a < first;
      if (b == a && from_outside) continue;                             // one outside value that all copies read
      if (a != kOutside && b != kOutside && b == a + length) continue;  // the matching item of the previous copy
      if (!(is_second && from_outside && b != kOutside && b >= first && b < copy)) return false;
    }
  }
  return true;
}

// Returns the start that passes the fewest values from copy to copy.
std::uint32_t best_begin(const Run& run, const std::vector<std::uint32_t>& passed) {
  std::uint32_t best = run.begin;
  for (std::uint32_t begin = run.begin; begin <= run.begin + (run.end - run.begin) % run.period; ++begin)
    if (passed[begin + run.period] < passed[best + run.period]) best = begin;
  return best;
}

void add_blocks(const BlockItems& items, const Run& run, const std::vector<std::uint32_t>& passed,
                std::vector<RepeatedBlock>& blocks) {
  constexpr std::uint32_t kMostCopiesTogether =
      4;  // two kinds of layer may alternate: one copy then spans several periods
  for (std::uint32_t together = 1; together <= kMostCopiesTogether; ++together) {
    const Run taken{run.begin, run.end, run.period * together};
    if (taken.folded() == 0) return;
    const std::size_t known = blocks.size();
    std::uint32_t first = best_begin(taken, passed), count = 1;
    const auto finish = [&] {
      if (count > 1) blocks.push_back({first, taken.period, count});
    };
    for (std::uint32_t copy = first + taken.period; copy + taken.period <= taken.end; copy += taken.period) {
      if (are_wired_alike(items, first, copy, taken.period)) {
        ++count;
        continue;
      }
      finish();
      first = copy;
      count = 1;
    }
    finish();
    if (blocks.size() > known) return;
  }
}

// passed[i] is the number of items before i that are read at or after i.
std::vector<std::uint32_t> values_passed(const BlockItems& items) {
  const auto size = static_cast<std::uint32_t>(items.kinds.size());
  std::vector<std::uint32_t> last(size, 0), passed(size + 1, 0);
  for (std::uint32_t i = 0; i < size; ++i)
    for (const std::uint32_t operand : items.operands_of(i))
      if (operand != kOutside) last[operand] = i;
  std::vector<std::int64_t> change(size + 2, 0);
  for (std::uint32_t i = 0; i < size; ++i)
    if (last[i] > i) {
      ++change[i + 1];
      --change[last[i] + 1];
    }
  std::int64_t now = 0;
  for (std::uint32_t i = 0; i <= size; ++i) passed[i] = static_cast<std::uint32_t>(now += change[i]);
  return passed;
}

std::vector<RepeatedBlock> blocks_within(const BlockItems& items, std::uint32_t low, std::uint32_t high,
                                         const std::vector<std::uint32_t>& passed) {
  std::vector<RepeatedBlock> blocks;
  for (const Run& run : best_runs(maximal_runs(items.kinds, low, high))) add_blocks(items, run, passed, blocks);
  for (RepeatedBlock& block : blocks)  // the length at least halves each time: recursion stays shallow
    if (block.length > 1) block.inside = blocks_within(items, block.first, block.first + block.length, passed);
  return blocks;
}

}  // namespace

std::vector<RepeatedBlock> repeated_blocks(const BlockItems& items) {
  return blocks_within(items, 0, static_cast<std::uint32_t>(items.kinds.size()), values_passed(items));
}

}  // namespace fusec
