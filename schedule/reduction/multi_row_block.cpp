#include "schedule/reduction/multi_row_block.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "analysis/kernel/loads.h"
#include "ir/type.h"
#include "schedule/reduction/row_values.h"
#include "schedule/target/target.h"

namespace fusec {
namespace {

constexpr std::int64_t kFewestRows = 64;                                              // fewer rows take one warp each
constexpr std::int64_t kLongest = 512, kLongestAlone = 320, kLongestRepeated = 1100;  // elements of a row
constexpr int kMaxIterationsOfLane = 64;                                              // elements per lane
constexpr int kMaxIterationsAlone = 96;   // elements per lane that keeps nothing
constexpr int kMostElements = 20 * 1024;  // of shared memory, so that several blocks fit
constexpr int kMinRowsWithBroadcast = 8;  // per block
constexpr int kMaxMultiRowThreads = 512;
constexpr int kMostRuns = 64;  // per block
constexpr int kVectorBits = 128;

bool is_word(ScalarType type) {
  return type == ScalarType::kFloat32 || type == ScalarType::kInt32 || type == ScalarType::kUInt32;
}
bool is_stored_as_word(ScalarType type) {
  return is_word(type) || type == ScalarType::kBool;
}

// Reads the form and classifies its loads and stores: contiguous rows, repeated rows, vectors shared by rows.
class MultiRowBlockReader {
 public:
  MultiRowBlockReader(const RowForm& form, const Graph& graph)
      : form_(form), graph_(graph), pool_(form.kernel.pool), depends_(dependences(pool_)) {}

  // The tiles and their loads; nothing if there is any other kind of access.
  std::optional<MultiRowBlock> read() {
    if (!find_length()) return std::nullopt;
    for (const ExprId id : reachable(pool_, roots_of(form_.kernel)))
      if (!see(id)) return std::nullopt;
    if (std::ranges::none_of(plan_.tiles, [](const MultiRowBlock::Tile& t) { return !t.broadcast; }))
      return std::nullopt;
    const bool alone = std::ranges::none_of(plan_.tiles, &MultiRowBlock::Tile::broadcast);
    const bool repeats = plan_.along_last && rows_start_within(kVectorBits);
    if (plan_.length > (repeats ? kLongestRepeated : alone ? kLongestAlone : kLongest)) return std::nullopt;
    if (!see_outputs() || !rows_start_within(8 * kSectorBytes)) return std::nullopt;
    // Lanes may take such rows by vectors (row_layout), without gaps in a warp's accesses.
    if (fits_one_lane(plan_.length, std::ranges::max(bits_of_rows()))) return std::nullopt;
    if (plan_.along_last) go_along_last_axis();
    return plan_;
  }
  int narrowest_bits() const { return std::ranges::min(bits_of_rows()); }

 private:
  bool find_length() {
    std::optional<RowAxes> along = axes_of_one_length(form_);
    if (!along || form_.rows.empty() || along->length < 2 || along->length > kLongestRepeated) return false;
    along_ = std::move(along->axes);
    plan_.length = static_cast<int>(along->length);
    for (const std::uint32_t a : form_.rows) flat_row_ = flat_row_ * pool_.extent(a) + IndexExpr::axis(a);
    return true;
  }

  bool is_of_rows(const IndexExpr& at, std::uint32_t axis) const {
    return simplify(at - flat_row_ * plan_.length - IndexExpr::axis(axis), pool_.bounds()).is(0);
  }

  bool depends_on_rows(ExprId id) const {
    return std::ranges::any_of(form_.rows,
                               [&](std::uint32_t a) { return std::ranges::binary_search(depends_[id], a); });
  }

  bool see(ExprId id) {
    const ExprNode& n = pool_[id];
    if (n.op == ExprOp::kReduce && std::ranges::find(form_.reductions, id) == form_.reductions.end()) return false;
    if (n.op != ExprOp::kLoad) return true;
    std::vector<std::uint32_t> here;
    for (const std::uint32_t a : along_)
      if (std::ranges::binary_search(depends_[id], a)) here.push_back(a);
    if (here.empty()) return true;  // one value per row, or for all rows
    const bool has_guard = !n.args.empty() && n.args[0] != kNoExpr;
    if (here.size() > 1 || has_guard || !is_stored_as_word(n.type) || bits(n.dtype) < 8 || bits(n.dtype) > 32)
      return false;
    MultiRowBlock::Tile tile{.value = n.source, .dtype = n.dtype, .type = n.type};
    const IndexExpr at = position_of(graph_, pool_, id);
    if (!is_of_rows(at, here[0]) && !repeats(at, here[0], tile)) return false;
    const auto known = std::ranges::find(plan_.tiles, tile);
    plan_.tile_of[id] = static_cast<std::size_t>(known - plan_.tiles.begin());
    if (known == plan_.tiles.end()) plan_.tiles.push_back(tile);
    return true;
  }

  // A row shared by all rows or by those along the last axis, or rows that are contiguous along that axis.
  bool repeats(const IndexExpr& at, std::uint32_t axis, MultiRowBlock::Tile& tile) {
    tile.start = simplify(at - IndexExpr::axis(axis), pool_.bounds());
    if (mentions(tile.start, Variable{Variable::Kind::kAxis, axis})) return false;
    tile.whole = false, tile.broadcast = true;
    if (by_values(tile.start)) return false;
    const Variable last{Variable::Kind::kAxis, form_.rows.back()};
    if (mentions(tile.start, last)) {
      tile.start = simplify(tile.start - IndexExpr::axis(last.id) * plan_.length, pool_.bounds());
      if (mentions(tile.start, last)) return false;
      tile.broadcast = false;
      plan_.along_last = true;
    }
    for (const std::uint32_t a : form_.rows)
      plan_.along_last = plan_.along_last || mentions(tile.start, Variable{Variable::Kind::kAxis, a});
    return true;
  }

  // A result may reuse the tile of an operand of its type: the thread that stores an element is the only one that reads
  // it.
  bool see_outputs() {
    std::vector<bool> taken(plan_.tiles.size(), false);
    for (const KernelOutput& output : form_.kernel.outputs) {
      if (!form_.columns.empty() && columns_without(form_, output).empty()) {
        const ScalarType type = pool_[output.expr].type;
        const DType dtype = output.type.dtype;
        if (!is_word(type) || bits(dtype) < 8 || bits(dtype) > 32 || dtype == DType::kBool) return false;
        if (!is_of_rows(position_of(pool_, output), form_.columns[0])) return false;
        std::size_t mine = 0;
        while (mine < taken.size() && (taken[mine] || !plan_.tiles[mine].whole || plan_.tiles[mine].type != type))
          ++mine;
        if (mine == taken.size()) {
          plan_.tiles.push_back({.dtype = dtype, .type = type});
          taken.push_back(false);
        }
        taken[mine] = true;
        plan_.stored.push_back(mine);
      } else {
        plan_.stored.push_back(MultiRowBlock::kNoTile);
      }
    }
    return true;
  }

  // Restricts runs to the last axis of rows.
  void go_along_last_axis() {
    const std::uint32_t last = form_.rows.back();
    const IndexExpr first_row = simplify(flat_row_ - IndexExpr::axis(last), pool_.bounds());
    for (MultiRowBlock::Tile& tile : plan_.tiles)
      if (tile.whole) tile.start = simplify(first_row * plan_.length, pool_.bounds());
    int most = 0;
    for (const std::uint32_t a : form_.rows) {
      if (a == last) continue;
      int repeated_axis = 0;
      for (const MultiRowBlock::Tile& tile : plan_.tiles)
        if (!tile.broadcast && !mentions(tile.start, Variable{Variable::Kind::kAxis, a}))
          repeated_axis += bits(tile.dtype);
      if (repeated_axis > most) plan_.repeated_axis = a, most = repeated_axis;
    }
    for (MultiRowBlock::Tile& tile : plan_.tiles)
      tile.per_run =
          !plan_.repeated_axis || mentions(tile.start, Variable{Variable::Kind::kAxis, *plan_.repeated_axis});
  }

  // Bits of an element, for each operand and result with contiguous rows.
  std::vector<int> bits_of_rows() const {
    std::vector<int> found;
    for (const MultiRowBlock::Tile& tile : plan_.tiles)
      if (!tile.broadcast) found.push_back(bits(tile.dtype));
    for (std::size_t i = 0; i < plan_.stored.size(); ++i)
      if (plan_.stored[i] != MultiRowBlock::kNoTile) found.push_back(bits(form_.kernel.outputs[i].type.dtype));
    return found;
  }

  // True if some row starts inside a piece of `piece` bits.
  bool rows_start_within(int piece) const {
    return std::ranges::any_of(bits_of_rows(), [&](int of_element) { return plan_.length * of_element % piece != 0; });
  }

  const RowForm& form_;
  const Graph& graph_;
  const ExprPool& pool_;
  Dependences depends_;
  std::vector<std::uint32_t> along_;  // axes that are contiguous along a row
  IndexExpr flat_row_ = 0;
  MultiRowBlock plan_;
};

// Iterations per lane: more if elements are visited once and not kept.
int max_iterations(const RowForm& form) {
  const bool once = form.columns.empty() && reduction_loops(form).size() == 1;
  return once ? kMaxIterationsAlone : kMaxIterationsOfLane;
}

// Splits a row among lanes without bank conflicts. Each lane has an odd number of elements, and the rows of one warp
// start at different remainders modulo the number of lanes.
bool divide_row(MultiRowBlock& plan, int max_iterations) {
  if (plan.lanes == kWarpLanes) {
    plan.stride = kWarpLanes, plan.iterations = (plan.length + kWarpLanes - 1) / kWarpLanes;
    return plan.iterations <= max_iterations;
  }
  const int even = 1 << std::countr_zero(static_cast<unsigned>(plan.length));
  if (plan.lanes < even) return false;
  plan.warp_row_stride = plan.lanes / even;
  plan.step = plan.lanes == 1 ? plan.length : (plan.length + plan.lanes - 1) / plan.lanes | 1;
  plan.iterations = plan.step;
  return plan.iterations <= max_iterations && plan.min_iterations() > 0;
}

// Chooses rows per block and places the tiles in shared memory. Blocks have whole sectors if runs cover all rows.
// Broadcast operands are read once for several rows.
bool place_tiles(MultiRowBlock& plan, int narrowest_bits, const Target& target, const Bounds& bounds) {
  plan.rows = plan.threads / plan.lanes;
  const bool broadcast = std::ranges::any_of(plan.tiles, &MultiRowBlock::Tile::broadcast);
  if (plan.rows < (broadcast ? kMinRowsWithBroadcast : 1)) return false;
  if (!plan.along_last && plan.rows * plan.length * narrowest_bits % (8 * kSectorBytes) != 0) return false;
  plan.elements = 0;
  for (MultiRowBlock::Tile& tile : plan.tiles) {
    tile.aligned = tile.broadcast || starts_aligned(plan, tile.start, tile.dtype, bounds);
    tile.place = plan.elements;
    const int elements = plan.length * (tile.broadcast ? 1 : plan.rows), vector = kVectorBits / bits(tile.dtype);
    tile.elements = tile.aligned ? (elements + 3) / 4 * 4 : (elements + 2 * (vector - 1)) / vector * vector;
    plan.elements += tile.elements * (tile.per_run ? plan.parallel_runs : 1);
  }
  return plan.elements <= kMostElements && 4 * plan.elements <= target.shared_bytes_per_block;
}

// Cycles on one multiprocessor: `work` for the total issue and memory load, `time` until completion.
struct MultiRowBlockCost {
  double work = 0, time = 0;
};

class Costs {
 public:
  Costs(const RowForm& form, const Graph& graph, const Target& target)
      : form_(form), target_(target), code_(code_of_row(form, graph)) {}

  int code() const { return code_; }
  std::int64_t count(std::uint32_t axis) const {
    return std::max<std::int64_t>(1, value_at_hint(form_.kernel.pool.extent(axis), form_.kernel.pool.bounds().symbols));
  }
  std::int64_t rows() const {
    std::int64_t rows = 1;
    for (const std::uint32_t a : form_.rows) rows *= count(a);
    return rows;
  }

  MultiRowBlockCost of(const MultiRowBlock& plan) const {
    constexpr double kAround = 60, kMeeting = 8, kLaunch = 3000, kOfSector = 1;
    constexpr double kIdle = 20;    // per warp of a block; few have rows if the launch has few rows
    constexpr double kLatency = 2;  // cycles per instruction of a scheduler's only warp, which overlaps some
    constexpr double kSchedulers = 4, kWantedWarps = 16, kSharedBytes = 164.0 * 1024;
    const double warps = plan.block_threads() / static_cast<double>(kWarpLanes);
    double once = kAround + (has_constant_rows() ? 0 : kIdle * warps),
           each = plan.iterations * code_;  // per block, per run
    double sectors_once = 0, sectors_each = 0;
    for (int lanes = plan.lanes; lanes > 1; lanes /= 2) each += kMeeting * static_cast<double>(form_.reductions.size());
    for (const MultiRowBlock::Tile& tile : plan.tiles) {
      (tile.per_run ? each : once) +=
          instructions_to_copy(plan, tile, tile.per_run ? plan.threads : plan.block_threads());
      (tile.per_run ? sectors_each : sectors_once) += sectors_of(plan, tile);
    }
    const double of_thread = once + plan.sequential_runs * each;
    const double blocks = blocks_of(plan), sectors = (sectors_once + plan.runs() * sectors_each) * blocks;
    const double of_multiprocessor = std::ceil(blocks / target_.multiprocessors) * warps;
    const double together = std::floor(kSharedBytes / (4.0 * plan.elements + 1024)) * warps;
    const double waiting = std::max(1.0, kWantedWarps / std::max(1.0, together));
    const double asking = kOfSector * sectors / target_.multiprocessors;
    return {.work = of_thread * warps * blocks / kSchedulers / target_.multiprocessors + asking,
            .time = kLaunch + asking + of_thread * std::max(kLatency, waiting * of_multiprocessor / kSchedulers)};
  }

 private:
  bool has_constant_rows() const {
    return simplify(point_count(form_.kernel.pool, form_.rows), form_.kernel.pool.bounds()).as_constant().has_value();
  }

  double blocks_of(const MultiRowBlock& plan) const {
    const auto divided = [](std::int64_t count, int by) { return static_cast<double>((count + by - 1) / by); };
    if (!plan.along_last) return divided(rows(), plan.rows);
    double blocks = divided(count(form_.rows.back()), plan.rows);
    for (const std::uint32_t a : form_.rows)
      if (a != form_.rows.back()) blocks *= divided(count(a), a == plan.repeated_axis ? plan.runs() : 1);
    return blocks;
  }

  // Average per thread; warps have whole iterations.
  static double instructions_to_copy(const MultiRowBlock& plan, const MultiRowBlock::Tile& tile, int threads) {
    constexpr double kOfTile = 12, kOfEnds = 24, kOfVector = 6, kOfElement = 1.5;
    const int vector = tile.broadcast ? 1 : kVectorBits / bits(tile.dtype);
    const int per_iteration = kWarpLanes * vector, elements = plan.length * (tile.broadcast ? 1 : plan.rows);
    const double iterations =
        static_cast<double>((elements + per_iteration - 1) / per_iteration) * kWarpLanes / threads;
    return kOfTile + iterations * (kOfVector + kOfElement * vector) + (tile.aligned ? 0 : kOfEnds);
  }

  // Sectors per run. An operand's tile that is also stored counts twice.
  static double sectors_of(const MultiRowBlock& plan, const MultiRowBlock::Tile& tile) {
    const double elements = static_cast<double>(plan.length) * (tile.broadcast ? 1 : plan.rows);
    return std::ceil(elements * bits(tile.dtype) / (8 * kSectorBytes)) + (tile.aligned ? 0 : 1);
  }

  const RowForm& form_;
  const Target& target_;
  const int code_;
};

}  // namespace

int MultiRowBlock::min_iterations() const {
  return stride > 1 ? length / stride : length - (lanes - 1) * step;
}

bool starts_aligned(const MultiRowBlock& plan, const IndexExpr& start, DType dtype, const Bounds& bounds) {
  const int vector = kVectorBits / bits(dtype);
  return plan.rows * plan.length % vector == 0 && proves_multiple_of(start, vector, bounds);
}

std::vector<MultiRowBlock> multi_row_block(const RowForm& form, const Graph& graph, const Target& target) {
  const Costs costs(form, graph, target);
  if (costs.rows() < kFewestRows) return {};
  MultiRowBlockReader reader(form, graph);
  const auto read = reader.read();
  if (!read) return {};
  const std::int64_t most_runs =
      read->repeated_axis ? std::min<std::int64_t>(kMostRuns, costs.count(*read->repeated_axis)) : 1;
  const int most = max_iterations(form);
  std::vector<std::pair<MultiRowBlockCost, MultiRowBlock>> candidates;
  for (const int lanes : {1, 2, 4, 8, 16, kWarpLanes}) {
    MultiRowBlock plan = *read;
    plan.lanes = lanes;
    if (!divide_row(plan, most) || plan.iterations * costs.code() > kMaxUnrolledInstructions)
      continue;  // loops are unrolled
    for (plan.threads = kWarpLanes * plan.warp_row_stride; plan.threads <= kMaxMultiRowThreads; plan.threads *= 2)
      for (plan.parallel_runs = 1; plan.parallel_runs <= most_runs && plan.block_threads() <= kMaxMultiRowThreads;
           plan.parallel_runs *= 2) {
        if (!place_tiles(plan, reader.narrowest_bits(), target, form.kernel.pool.bounds())) continue;
        for (plan.sequential_runs = 1; plan.runs() <= most_runs; plan.sequential_runs *= 2)
          candidates.emplace_back(costs.of(plan), plan);
        plan.sequential_runs = 1;
      }
  }
  // Among candidates with nearly the least time, the one with the least work comes first.
  constexpr double kAboutAsLong = 1.2;
  double least = 0;
  for (const auto& [cost, plan] : candidates) least = least == 0 ? cost.time : std::min(least, cost.time);
  std::ranges::stable_sort(candidates, {}, [&](const auto& plan) {
    const bool fast = plan.first.time <= kAboutAsLong * least;
    return std::pair(!fast, fast ? plan.first.work : plan.first.time);
  });
  std::vector<MultiRowBlock> result;
  for (auto& plan : candidates) result.push_back(std::move(plan.second));
  return result;
}

std::string name_of(const MultiRowBlock& plan) {
  const std::string runs =
      plan.runs() == 1 ? "" : fmt::format(" {} by {} times", plan.parallel_runs, plan.sequential_runs);
  return fmt::format("{} rows{} through shared memory, {} threads each", plan.rows, runs, plan.lanes);
}

}  // namespace fusec
