#include "schedule/movement/access_samples.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>
#include <span>

#include "analysis/kernel/loads.h"
#include "ir/type.h"
#include "schedule/layout/memory_access.h"
#include "schedule/target/target.h"

namespace fusec {
namespace {

constexpr int kSampledWarps = 6;

// A hash of the two numbers.
std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = (a + 0x9e3779b97f4a7c15ull) ^ (b * 0xbf58476d1ce4e5b9ull);
  x = (x ^ (x >> 31)) * 0x94d049bb133111ebull;
  return x ^ (x >> 29);
}

}  // namespace

AccessSamples::AccessSamples(const Kernel& kernel, const Graph& graph)
    : kernel_(kernel),
      graph_(graph),
      axes_(kernel.pool.bounds().axes.size(), 0),
      depends_(dependences(kernel.pool)),
      positions_(kernel.pool.size()),
      known_(kernel.pool.size(), false),
      results_(kernel.pool.size(), 0) {
  for (const std::uint32_t axis : kernel.outputs.at(0).axes) {
    extents_.emplace_back(axis, std::max<std::int64_t>(1, hint(kernel.pool.extent(axis))));
    points_ *= extents_.back().second;
  }
}

std::int64_t AccessSamples::hint(const IndexExpr& e) const {
  return value_at_hint(e, graph_.symbols);
}

void AccessSamples::move_to(std::int64_t point) {
  for (std::size_t i = extents_.size(); i-- > 0;) {
    axes_[extents_[i].first] = point % extents_[i].second;
    point /= extents_[i].second;
  }
}

std::int64_t AccessSamples::value(const IndexExpr& e) const {
  return evaluate(e, [this](Variable v) -> std::int64_t {
    if (v.kind == Variable::Kind::kAxis) return axes_[v.id];
    if (v.kind == Variable::Kind::kSymbol) return graph_.symbols[v.id].hint;
    std::uint64_t where = v.id;
    for (const std::uint32_t axis : depends_[v.id]) where = mixed(where, static_cast<std::uint64_t>(axes_[axis]));
    const Bounds& bounds = kernel_.pool.bounds();
    const std::int64_t limit =
        v.id < bounds.value_max.size() ? value_at_hint(bounds.value_max[v.id], graph_.symbols) : 1;
    return static_cast<std::int64_t>(where % static_cast<std::uint64_t>(std::max<std::int64_t>(1, limit)));
  });
}

const std::vector<ExprId>& AccessSamples::order_of(ExprId condition) {
  const auto [at, is_new] = orders_.try_emplace(condition);
  if (is_new) at->second = reachable(kernel_.pool, std::span(&condition, 1));
  return at->second;
}

// Evaluates comparisons of indices. Other conditions are assumed to hold.
bool AccessSamples::holds(ExprId condition) {
  for (const ExprId id : order_of(condition)) {
    const ExprNode& n = kernel_.pool[id];
    const auto of = [&](std::size_t i) { return results_[n.args[i]]; };
    std::int64_t& result = results_[id];
    switch (n.op) {
      case ExprOp::kConstant:
        result = n.integer;
        break;
      case ExprOp::kIndex:
        result = value(n.indices[0]);
        break;
      case ExprOp::kNot:
        result = of(0) == 0;
        break;
      case ExprOp::kAnd:
        result = of(0) != 0 && of(1) != 0;
        break;
      case ExprOp::kOr:
        result = of(0) != 0 || of(1) != 0;
        break;
      case ExprOp::kLt:
        result = of(0) < of(1);
        break;
      case ExprOp::kLe:
        result = of(0) <= of(1);
        break;
      case ExprOp::kGt:
        result = of(0) > of(1);
        break;
      case ExprOp::kGe:
        result = of(0) >= of(1);
        break;
      case ExprOp::kEq:
        result = of(0) == of(1);
        break;
      case ExprOp::kNe:
        result = of(0) != of(1);
        break;
      default:
        result = 1;
    }
  }
  return results_[condition] != 0;
}

std::optional<std::int64_t> AccessSamples::position(ExprId load) {
  const ExprNode& n = kernel_.pool[load];
  if (n.args[0] != kNoExpr && !holds(n.args[0])) return std::nullopt;
  if (!known_[load]) {
    positions_[load] = position_of(graph_, kernel_.pool, load);
    known_[load] = true;
  }
  return value(positions_[load]);
}

std::vector<std::int64_t> AccessSamples::starts(std::int64_t count, int samples) const {
  const std::int64_t all = std::max<std::int64_t>(1, points_ / count);
  std::vector<std::int64_t> found;
  for (std::int64_t i = 0; i < std::min<std::int64_t>(all, samples); ++i) {
    // Golden-section steps, so that the samples do not align with rows.
    const std::int64_t at = all <= samples ? i : (i * 618 + 7) % 1000 * all / 1000;
    found.push_back(at * count);
  }
  return found;
}

std::vector<std::int64_t> AccessSamples::distances(ExprId load, std::uint32_t axis) {
  constexpr int kSamples = 16;
  const auto extent = std::ranges::find(extents_, axis, &std::pair<std::uint32_t, std::int64_t>::first)->second;
  std::vector<std::int64_t> found;
  for (const std::int64_t point : starts(1, kSamples)) {
    move_to(point);
    if (axes_[axis] + 1 >= extent) continue;
    const auto here = position(load);
    ++axes_[axis];
    const auto next = position(load);
    if (here && next) found.push_back(std::abs(*next - *here));
  }
  return found;
}

bool AccessSamples::is_small_table(ExprId load) const {
  constexpr std::int64_t kSmallTable = 4096;
  return bytes_at_hint(graph_.tensor(kernel_.pool[load].source), graph_.symbols) <= kSmallTable;
}

double AccessSamples::sectors_per_point(ExprId load, int width, bool one_access) {
  const int bytes = std::max(1, bits(kernel_.pool[load].dtype) / 8);
  std::int64_t sectors = 0, seen = 0;
  for (const std::int64_t start : starts(std::int64_t{kWarpLanes} * width, kSampledWarps)) {
    std::vector<std::int64_t> places;
    for (int e = 0; e < width; ++e) {
      for (int lane = 0; lane < kWarpLanes; ++lane) {
        const std::int64_t point = start + lane * width + e;
        if (point >= points_) continue;
        ++seen;
        move_to(point);
        if (const auto at = position(load)) places.push_back(*at * bytes);
      }
      if (one_access && e + 1 < width) continue;
      sectors += count_sectors(places);
      places.clear();
    }
  }
  return seen == 0 ? 0 : static_cast<double>(sectors) / static_cast<double>(seen);
}

double movement_time(double sectors, double instructions, double passes) {
  constexpr double kIssued = 10, kPasses = 2, kOthers = 0.15;
  const std::array<double, 3> times{sectors, instructions / kIssued, passes / kPasses};
  return (1 - kOthers) * std::ranges::max(times) + kOthers * std::accumulate(times.begin(), times.end(), 0.0);
}

int alignment_of(const IndexExpr& position, int element_bits, const Bounds& bounds) {
  int bytes = static_cast<int>(kSectorBytes);
  while (bytes > 1 && bytes * 8 > element_bits && !proves_multiple_of(position, bytes * 8 / element_bits, bounds))
    bytes /= 2;
  return bytes;
}

}  // namespace fusec
