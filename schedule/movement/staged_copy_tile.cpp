#include "schedule/movement/staged_copy_tile.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "analysis/kernel/loads.h"
#include "ir/type.h"
#include "schedule/layout/memory_access.h"

namespace fusec {

bool has_axis(const std::vector<std::size_t>& axes, std::size_t i) {
  return std::ranges::find(axes, i) != axes.end();
}

namespace {

// Whose rows do not lie evenly apart.
bool scattered(const TileSide& side) {
  return side.indexed || !side.in_vectors;
}

constexpr std::size_t kMostOperands = 8;
constexpr std::int64_t kFewestPoints = 4096;  // that are worth words of runs

// From one element of the axis to the next, where it is always as far and the same way, whatever the symbols are.
std::optional<IndexExpr> step_along(const IndexExpr& position, std::uint32_t axis, const Bounds& bounds) {
  const Variable variable{Variable::Kind::kAxis, axis};
  if (const auto step = coefficient_of(position, variable)) return *step;
  const IndexExpr next = substitute(position, [&](Variable v) -> std::optional<IndexExpr> {
    if (v != variable) return std::nullopt;
    return IndexExpr::axis(axis) + 1;
  });
  const IndexExpr step = simplify(next - position, bounds);
  const bool of_symbols =
      std::ranges::all_of(variables_of(step), [](Variable v) { return v.kind == Variable::Kind::kSymbol; });
  const Range range = range_of(step, bounds);
  if (!of_symbols || (range.min <= 0 && range.max >= 0)) return std::nullopt;
  return step;
}

bool holds_load(const ExprPool& pool, ExprId root) {
  return std::ranges::any_of(reachable(pool, std::vector<ExprId>{root}),
                             [&](ExprId id) { return pool[id].op == ExprOp::kLoad; });
}

// Which loads of a kernel cross its last axis.
class Crossings {
 public:
  Crossings(const Kernel& kernel, const Graph& graph)
      : kernel_(kernel),
        graph_(graph),
        pool_(kernel.pool),
        axes_(kernel.outputs[0].axes),
        dependences_(dependences(kernel.pool)) {}

  // The axis that the load's neighbours lie along, where that is another one than the last.
  std::optional<std::uint32_t> axis_of(ExprId id) {
    const ExprNode& n = pool_[id];
    if (n.op != ExprOp::kLoad || (n.args[0] != kNoExpr && holds_load(pool_, n.args[0]))) return std::nullopt;
    const IndexExpr position = position_of(graph_, pool_, id);
    // Whether an element is there must be known where it is copied, for all points that take it.
    if (n.args[0] != kNoExpr)
      for (const std::uint32_t a : dependences_[n.args[0]])
        if (!mentions(position, axis_variable(a))) return std::nullopt;
    if (by_values(position) || !mentions(position, axis_variable(axes_.back())) ||
        coefficient_of(position, axis_variable(axes_.back())) == 1)
      return std::nullopt;
    for (std::size_t i = axes_.size() - 1; i-- > 0;)
      if (coefficient_of(position, axis_variable(axes_[i])) == 1) return axes_[i];
    return nearly_along(id, position);
  }

  AccessSamples& samples() {
    if (!samples_) samples_.emplace(kernel_, graph_);
    return *samples_;
  }

 private:
  // The axis along which neighbours lie close to one another, rolled, reflected, backwards or in steps, where those
  // along the last axis lie apart.
  std::optional<std::uint32_t> nearly_along(ExprId id, const IndexExpr& position) {
    const auto mostly = [&](std::uint32_t axis, auto holds) {
      const std::vector<std::int64_t> distances = samples().distances(id, axis);
      return !distances.empty() && 4 * std::ranges::count_if(distances, holds) >= 3 * std::ssize(distances);
    };
    constexpr std::int64_t kNear = 2;
    const std::int64_t size = bits(pool_[id].dtype);
    if (!mostly(axes_.back(), [&](std::int64_t d) { return d * size >= kSectorBytes * 8; })) return std::nullopt;
    for (std::size_t i = axes_.size() - 1; i-- > 0;)
      if (mentions(position, axis_variable(axes_[i])) && mostly(axes_[i], [&](std::int64_t d) { return d <= kNear; }))
        return axes_[i];
    return std::nullopt;
  }

  const Kernel& kernel_;
  const Graph& graph_;
  const ExprPool& pool_;
  const std::vector<std::uint32_t>& axes_;
  const Dependences dependences_;
  std::optional<AccessSamples> samples_;
};

}  // namespace

bool has_crossing_load(const Kernel& kernel, const Graph& graph) {
  if (kernel.outputs[0].axes.size() < 2) return false;
  Crossings crossings(kernel, graph);
  return std::ranges::any_of(reachable(kernel.pool, roots_of(kernel)),
                             [&](ExprId id) { return crossings.axis_of(id).has_value(); });
}

TileSides::TileSides(Kernel kernel, const Graph& graph, int width)
    : graph_(graph),
      width_(width),
      kernel_(std::move(kernel)),
      samples_(kernel_, graph),
      axes_(kernel_.outputs[0].axes),
      stored_{.position = position_of(kernel_.pool, kernel_.outputs[0]), .bits = bits(kernel_.outputs[0].type.dtype)} {}

bool TileSides::is_stored_axis(std::uint32_t axis) const {
  return axis == axes_.back() || (width_ > 1 && axis == axes_[axes_.size() - 2]);
}

bool TileSides::mentions_axis(ExprId expr, std::uint32_t axis) const {
  return std::ranges::binary_search(dependences(kernel_.pool)[expr], axis);
}

// For plan_staged_vectors: stages the loads that cross the last axis.
bool TileSides::find_crossing() {
  Crossings crossings(kernel_, graph_);
  for (const ExprId id : reachable(kernel_.pool, roots_of(kernel_))) {
    const auto along = crossings.axis_of(id);
    if (!along || is_stored_axis(*along)) continue;
    const ExprNode& n = kernel_.pool[id];
    TileSide side{
        .load = id, .position = fusec::position_of(graph_, kernel_.pool, id), .bits = bits(n.dtype), .along = *along};
    const bool linear = coefficient_of(side.position, axis_variable(*along)) == 1;
    side.in_vectors = linear && n.args[0] == kNoExpr && (side.bits >= 8 || words_of_half_bytes(side));
    for (const std::uint32_t axis : axes_)
      if (is_stored_axis(axis)) side.in_vectors &= step_along(side.position, axis, bounds()).has_value();
    const bool guarded_along = n.args[0] != kNoExpr && mentions_axis(n.args[0], *along);
    if (!side.in_vectors && linear && !guarded_along && (side.bits >= 8 || words_of_half_bytes(side)))
      side.in_vectors = side.indexed =
          proves_multiple_of(side.position - IndexExpr::axis(*along), 128 / side.bits, bounds()) &&
          proves_multiple_of(kernel_.pool.extent(*along), 128 / side.bits, bounds());
    sides_.push_back(std::move(side));
  }
  tensors_ = sides_.size();
  return !sides_.empty() && sides_.size() <= kMostOperands;
}
// Eight of them are a word wherever a row begins.
bool TileSides::words_of_half_bytes(const TileSide& side) const {
  return proves_multiple_of(side.position - IndexExpr::axis(side.along), 8, bounds()) &&
         proves_multiple_of(kernel_.pool.extent(side.along), 8, bounds());
}

// Words: all loads, but for tables that stay in the first cache and what lies as the result does in whole words.
bool TileSides::find_all() {
  const ExprPool& pool = kernel_.pool;
  if (kernel_.outputs.size() != 1 || stored_.bits < 8 || axes_.size() < 2 || samples_.points() < kFewestPoints)
    return false;
  std::vector<TileSide> tables;
  for (const ExprId id : reachable(pool, roots_of(kernel_))) {
    const ExprNode& n = pool[id];
    if (n.op != ExprOp::kLoad) continue;
    TileSide side{.load = id, .position = fusec::position_of(graph_, pool, id), .bits = bits(n.dtype)};
    const bool plain = n.args[0] == kNoExpr && !by_values(side.position) && side.bits >= 8;
    if (samples_.is_small_table(id)) {
      side.table = true;
      if (plain && moves_in_steps(side.position)) tables.push_back(std::move(side));
      continue;
    }
    if (!plain) return false;
    if (side.position == stored_.position && stored_.bits >= 32)
      unstaged_sectors_ += side.bits / 256.0;
    else
      sides_.push_back(std::move(side));
  }
  tensors_ = sides_.size();
  sides_.insert(sides_.end(), tables.begin(), tables.end());
  const bool as_stored = std::ranges::all_of(sides_, [&](const TileSide& s) { return s.position == stored_.position; });
  return tensors_ > 0 && tensors_ <= kMostOperands / 2 && sides_.size() <= kMostOperands && !as_stored;
}
bool TileSides::moves_in_steps(const IndexExpr& position) const {
  bool moves = false;
  for (const std::uint32_t axis : axes_) {
    const auto step = step_along(position, axis, bounds());
    if (!step) return false;
    moves = moves || !step->is(0);
  }
  return moves;
}

// Axes along which the result and every load that is copied in vectors go in equal steps.
void TileSides::find_axes() {
  for (const std::uint32_t axis : axes_) {
    const auto stored = step_along(stored_.position, axis, bounds());
    std::vector<std::optional<IndexExpr>> steps;
    bool all = stored && samples_.hint(*stored) > 0;
    for (const TileSide& side : sides_) {
      steps.push_back(step_along(side.position, axis, bounds()));
      all = all && (steps.back() || !side.in_vectors || side.indexed);
    }
    if (!all) continue;
    const auto known = kernel_.pool.extent(axis).as_constant();
    tile_.push_back({axis, std::max<std::int64_t>(1, samples_.hint(kernel_.pool.extent(axis))), known.has_value()});
    add_step(stored_, axis, stored);
    for (std::size_t i = 0; i < sides_.size(); ++i) add_step(sides_[i], axis, steps[i]);
  }
  find_rest(stored_);
  for (TileSide& side : sides_) find_rest(side);
}
void TileSides::add_step(TileSide& side, std::uint32_t axis, const std::optional<IndexExpr>& step) const {
  constexpr std::int64_t kFar = 1 << 20;
  const bool depends = mentions(side.position, axis_variable(axis));
  const bool back = !scattered(side) && step && samples_.hint(*step) < 0;
  side.backwards.push_back(back);
  side.steps.push_back(!step ? IndexExpr(0) : back ? *step * -1 : *step);
  std::int64_t stride = step ? std::abs(samples_.hint(*step)) : depends ? kFar : 0;
  if (scattered(side) && axis == side.along) stride = 1;
  side.strides.push_back(stride);
  side.aligned.push_back(alignment_of(side.steps.back(), side.bits, bounds()));
}
// Where the tile's axes are 0.
void TileSides::find_rest(TileSide& side) const {
  const IndexExpr rest = substitute(side.position, [&](Variable v) -> std::optional<IndexExpr> {
    if (v.kind != Variable::Kind::kAxis || std::ranges::find(tile_, v.id, &Axis::axis) == tile_.end())
      return std::nullopt;
    return IndexExpr(0);
  });
  side.rest_aligned = alignment_of(simplify(rest, bounds()), side.bits, bounds());
}

// The axes that a row of the tensor could go along, were they whole; the fastest first. What is read may have some
// elements between that nobody wants (a part of the last axis).
std::vector<std::size_t> TileSides::order_of(const TileSide& side) const {
  std::vector<std::size_t> order(tile_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (scattered(side)) {
    std::erase_if(order, [&](std::size_t i) { return tile_[i].axis != side.along; });
    return order;
  }
  std::erase_if(order, [&](std::size_t i) { return side.strides[i] == 0 || !side.steps[i].is_constant(); });
  std::ranges::sort(order, {}, [&](std::size_t i) { return side.strides[i]; });
  std::int64_t span = 1;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::int64_t stride = side.strides[order[i]];
    if (side.load == kNoExpr ? stride != span : i == 0 ? stride != 1 : stride < span || 2 * stride > 3 * span) {
      order.resize(i);
      break;
    }
    span += (tile_[order[i]].extent - 1) * stride;
    if (!tile_[order[i]].known) {
      order.resize(i + 1);
      break;
    }
  }
  return order;
}

double TileSides::sectors_of(const TileExtents& extents) const {
  double sectors = unstaged_sectors_ + sectors_of(stored_, extents);
  for (const TileSide& side : sides_)
    if (!side.table) sectors += sectors_of(side, extents);
  return sectors;
}
// A row that begins anywhere touches one sector more than it fills, or two.
double TileSides::sectors_of(const TileSide& side, const TileExtents& extents) const {
  const TileRows rows = rows_of(side, extents);
  double runs = 1, elements = 1;
  for (const std::uint32_t axis : axes_) {
    const auto at = std::ranges::find(tile_, axis, &Axis::axis);
    if (at == tile_.end()) {
      runs *= static_cast<double>(samples_.hint(kernel_.pool.extent(axis)));
      continue;
    }
    const auto i = static_cast<std::size_t>(at - tile_.begin());
    const double parts = static_cast<double>(ceil_quotient(at->extent, extents[i]));
    runs *= has_axis(rows.across, i) ? static_cast<double>(at->extent) : parts;
    if (has_axis(rows.run, i))
      elements += (static_cast<double>(at->extent) / parts - 1) * static_cast<double>(side.strides[i]);
  }
  double touched =
      mean_sectors_of_run(std::max<std::int64_t>(1, static_cast<std::int64_t>(elements * side.bytes() + 0.5)),
                          side.in_vectors ? rows.aligned : std::max(1, side.bits / 8));
  // What of the result is less than a word is stored one by one.
  if (side.load == kNoExpr && width_ == 0 &&
      (rows.aligned < 4 || static_cast<std::int64_t>(elements * side.bytes()) % 4 != 0))
    touched += elements_of_word(side.bits) - 1;
  return runs * touched / static_cast<double>(samples_.points());
}

TileRows TileSides::rows_of(const TileSide& side, const TileExtents& extents, std::size_t cut) const {
  TileRows rows{.run = {}, .across = {}, .strides = side.strides, .steps = side.steps, .backwards = side.backwards};
  for (const std::size_t i : order_of(side)) {
    rows.run.push_back(i);
    if (extents[i] < tile_[i].extent) break;
  }
  rows.run.resize(rows.run.size() - std::min(cut, rows.run.size()));
  int aligned = side.rest_aligned;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (side.strides[i] == 0) continue;
    if (!has_axis(rows.run, i)) {
      aligned = std::min(aligned, side.aligned[i]);
      if (extents[i] > 1) rows.across.push_back(i);
    } else if (side.backwards[i]) {
      aligned = std::min(aligned, side.aligned[i]);
    } else if (extents[i] < tile_[i].extent || !tile_[i].known) {
      const std::int64_t bytes = side.strides[i] * extents[i] * side.bits / 8;
      aligned = std::min<std::int64_t>(aligned, std::gcd<std::int64_t>(bytes, kSectorBytes));
    }
  }
  std::ranges::sort(rows.across, {}, [&](std::size_t i) { return side.strides[i]; });
  rows.aligned = side.indexed ? kVectorBytes : aligned;
  return rows;
}

}  // namespace fusec
