#include "codegen/schedules/runs.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "analysis/kernel_forms.h"
#include "analysis/loads.h"
#include "analysis/target.h"
#include "codegen/emit_expr.h"
#include "codegen/schedules/access_samples.h"
#include "ir/type.h"

namespace fusec {
namespace {

constexpr std::int64_t kMostRunBytes = 24 * 1024;  // of shared memory, for all tensors
constexpr std::int64_t kFewestRuns = 8192;
constexpr int kSampledRunBlocks = 6, kSampledRuns = 48, kRowsOfThread = 4;

// A load of the tensor that is among what the piece is chosen from.
ExprId load_in(const RunPlan& plan, std::size_t tensor, const RowPiece& piece) {
  const auto found = std::ranges::find_if(piece.leaves, [&](ExprId leaf) {
    const ExprNode& n = plan.rows.kernel.pool[leaf];
    return n.op == ExprOp::kLoad && n.source == plan.tensors[tensor].source;
  });
  return found == piece.leaves.end() ? kNoExpr : *found;
}

void find_main_pieces(RunPlan& plan, const Graph& graph) {
  for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
    std::int64_t longest = 0;
    for (std::size_t i = 0; i < plan.rows.pieces.size(); ++i) {
      const RowPiece& piece = plan.rows.pieces[i];
      const std::int64_t length = value_at_hint(piece.end - piece.begin, graph.symbols);
      if (load_in(plan, t, piece) != kNoExpr && length > longest) longest = length, plan.tensors[t].main = i;
    }
  }
}

// What blocks are like here and there.
class BlockSampler {
 public:
  BlockSampler(const Graph& graph, const RunPlan& plan)
      : graph_(graph),
        plan_(plan),
        kernel_(plan.rows.kernel),
        samples_(kernel_, graph),
        length_(samples_.hint(plan.rows.length)),
        bytes_(bits(kernel_.outputs[0].type.dtype) / 8) {}

  struct Seen {
    std::vector<std::int64_t> most;  // vectors of a block, of each tensor
    double sectors = 0;              // of all loads, for a point
  };
  struct Met {
    double runs = 0;    // the part of all runs of which several pieces are
    double pieces = 0;  // of these
  };

  // Without what lies so far beside the middle row's line.
  Seen sample(std::int64_t far) {
    Seen seen{.most = std::vector<std::int64_t>(plan_.tensors.size(), 0)};
    std::int64_t sectors = 0, points = 0;
    for (const std::int64_t start : samples_.starts(plan_.block(), kSampledRunBlocks)) {
      const std::int64_t end = std::min(start + plan_.block(), samples_.points());
      points += end - start;
      for (std::size_t t = 0; t < plan_.tensors.size(); ++t) {
        std::int64_t low = -1, high = -1;
        const std::int64_t middle = line_of_middle(t, start, end);
        for (const Line& line : lines(t, start, end)) {
          if (far > 0 && std::abs(line.at - line.point - middle) >= far) {
            sectors += 3 * (line.high * bytes_ / 32 - line.low * bytes_ / 32 + 1);
            continue;
          }
          low = low < 0 ? line.low : std::min(low, line.low);
          high = std::max(high, line.high);
        }
        if (low < 0) continue;
        seen.most[t] = std::max(seen.most[t], high * bytes_ / 16 - low * bytes_ / 16 + 1);
        sectors += high * bytes_ / 32 - low * bytes_ / 32 + 1;
      }
    }
    seen.sectors = static_cast<double>(sectors) / static_cast<double>(points);
    return seen;
  }

  Met meetings() const {
    std::int64_t runs = 0, listed = 0, pieces = 0;
    for (const std::int64_t start : samples_.starts(plan_.block(), kSampledRunBlocks))
      for (std::int64_t i = 0; i < kSampledRuns; ++i, ++runs) {
        const std::int64_t first = start + i * (plan_.threads * plan_.turns - 1) / (kSampledRuns - 1) * plan_.width;
        const int of_run = pieces_of_run(first % length_);
        listed += of_run > 0;
        pieces += of_run;
      }
    if (listed == 0) return {};
    return {static_cast<double>(listed) / static_cast<double>(runs),
            static_cast<double>(pieces) / static_cast<double>(listed)};
  }

 private:
  // None where it is one that lies as the result does.
  int pieces_of_run(std::int64_t column) const {
    int count = 0;
    const std::int64_t end = column + plan_.width;
    bool plain = false;
    for (std::int64_t row = 0; row < end; row += length_)
      for (const RowPiece& piece : plan_.rows.pieces) {
        const std::int64_t from = row + samples_.hint(piece.begin), to = row + samples_.hint(piece.end);
        if (from >= end || to <= column) continue;
        ++count;
        plain = piece.step == 1;
      }
    return count == 1 && plain ? 0 : count;
  }

  // What the points of a block read of a tensor in a row: the first and the last element there, and the element of one
  // of the points.
  struct Line {
    std::int64_t low, high, at, point;
  };
  std::vector<Line> lines(std::size_t tensor, std::int64_t start, std::int64_t end) {
    std::vector<Line> found;
    for (std::int64_t row = start / length_; row <= (end - 1) / length_; ++row)
      for (const RowPiece& piece : plan_.rows.pieces) {
        const std::int64_t first = row * length_ + samples_.hint(piece.begin);
        const std::int64_t last = row * length_ + samples_.hint(piece.end) - 1;
        const std::int64_t low = std::max(first, start), high = std::min(last, end - 1);
        if (low > high) continue;
        samples_.move_to(first);
        const ExprId load = load_of(kernel_.outputs[0].expr);
        if (load == kNoExpr || kernel_.pool[load].source != plan_.tensors[tensor].source) continue;
        const std::int64_t at = samples_.position(load).value_or(0);
        const std::int64_t a = at + piece.step * (low - first), b = at + piece.step * (high - first);
        found.push_back({std::min(a, b), std::max(a, b), a, low});
      }
    return found;
  }

  // By how much what the middle row reads lies behind its points.
  std::int64_t line_of_middle(std::size_t tensor, std::int64_t start, std::int64_t end) {
    const std::int64_t row = (start / length_ + ((end - 1) / length_ - start / length_ + 1) / 2);
    const RowPiece& piece = plan_.rows.pieces[plan_.tensors[tensor].main];
    samples_.move_to(row * length_);
    return samples_.value(place_in_piece(plan_.rows, piece, graph_, load_in(plan_, tensor, piece))) - row * length_ -
           samples_.hint(piece.begin);
  }

  // The load that is the value here, if one is.
  ExprId load_of(ExprId value) {
    while (kernel_.pool[value].op == ExprOp::kSelect)
      value = kernel_.pool[value].args[samples_.holds(kernel_.pool[value].args[0]) ? 1 : 2];
    return kernel_.pool[value].op == ExprOp::kLoad && samples_.position(value) ? value : kNoExpr;
  }

  const Graph& graph_;
  const RunPlan& plan_;
  const Kernel& kernel_;
  AccessSamples samples_;
  const std::int64_t length_, bytes_;
};

// Instructions for a point, as counted: of a run; of a thread; of one that has a row, of all its pieces, and of the
// table; of a thread for each tensor and each turn of copying it; and of the pieces of which others are put together.
double instructions_of(const RunPlan& plan, const BlockSampler::Met& met, std::int64_t rows) {
  constexpr double kRun = 75, kThread = 45, kRow = 30, kPiece = 30, kTensor = 45, kCopy = 4;
  constexpr double kEvenPiece = 20, kEvenTensor = 20;
  constexpr double kMade = 25, kMadePiece = 62;
  const auto pieces = static_cast<double>(std::ranges::count(plan.rows.pieces, false, &RowPiece::constant));
  const double of_rows = std::max(1.0, static_cast<double>(rows) / plan.threads + 0.25);
  double thread = kThread + (plan.even ? kEvenPiece * pieces : of_rows * (kRow + kPiece * pieces));
  for (const RunPlan::Tensor& tensor : plan.tensors)
    thread += (plan.even ? kEvenTensor : kTensor) + kCopy * ((tensor.most + plan.threads - 1) / plan.threads);
  // Of the block's, in whole warps.
  const double warps = static_cast<double>(plan.threads) / kWarpLanes, listed = met.runs * warps * plan.turns;
  const double made = met.runs > 0 ? (listed + 0.5) / warps * (kMade + kMadePiece * met.pieces) : 0;
  return (kRun + 4 * pieces + (thread + made) / plan.turns) / plan.width;
}

bool stores_in_order(const Kernel& kernel) {
  const KernelOutput& output = kernel.outputs[0];
  IndexExpr flat = 0;
  for (const std::uint32_t axis : output.axes) flat = flat * kernel.pool.extent(axis) + IndexExpr::axis(axis);
  const Bounds& bounds = kernel.pool.bounds();
  return simplify(flat_index(output.type.shape, output.index), bounds) == simplify(flat, bounds);
}

bool reads_stored_places(const Kernel& kernel, const Graph& graph, const RunPlan& plan) {
  const KernelOutput& output = kernel.outputs[0];
  const IndexExpr stored = simplify(flat_index(output.type.shape, output.index), kernel.pool.bounds());
  return std::ranges::any_of(plan.tensors, [&](const RunPlan::Tensor& tensor) {
    return std::ranges::any_of(tensor.loads,
                               [&](ExprId load) { return position_of(graph, kernel.pool, load) == stored; });
  });
}

// False where what is read is of another type.
bool add_leaves(RunPlan& plan) {
  const Kernel& kernel = plan.rows.kernel;
  for (const RowPiece& piece : plan.rows.pieces)
    for (const ExprId leaf : piece.leaves) {
      const ExprNode& n = kernel.pool[leaf];
      if (n.op == ExprOp::kConstant) {
        if (std::ranges::find(plan.constants, leaf) == plan.constants.end()) plan.constants.push_back(leaf);
        continue;
      }
      if (n.dtype != kernel.outputs[0].type.dtype) return false;
      auto at = std::ranges::find(plan.tensors, n.source, &RunPlan::Tensor::source);
      if (at == plan.tensors.end()) at = plan.tensors.insert(at, {.source = n.source});
      if (std::ranges::find(at->loads, leaf) == at->loads.end()) at->loads.push_back(leaf);
    }
  return !plan.tensors.empty();
}

// Do all pieces' rows lie one behind the other, and all as far?
bool lies_evenly(const RunPlan& plan) {
  const Bounds& bounds = plan.rows.kernel.pool.bounds();
  return std::ranges::all_of(plan.rows.pieces, [&](const RowPiece& piece) {
    return piece.constant || (piece.line != kNoExpr && piece.step == 1 &&
                              proves_nonnegative(piece.apart - (piece.end - piece.begin), bounds));
  });
}

// As many runs to a thread as leave nearly every multiprocessor a block.
void choose_block(RunPlan& plan, std::int64_t runs, const Target& target) {
  while (plan.turns > 1 && 4 * runs < std::int64_t{3} * plan.threads * plan.turns * target.multiprocessors)
    plan.turns /= 2;
}

// Of rows of the expected length, wherever in one the block begins.
std::int64_t most_rows_of_block(const RunPlan& plan, const Graph& graph) {
  const std::int64_t length = value_at_hint(plan.rows.length, graph.symbols);
  const std::int64_t last_begin = length - (plan.rows.length.is_constant() ? std::gcd(length, plan.block()) : 1);
  return (last_begin + plan.block() - 1) / length + 1;
}

// Where everything lies in shared memory: constants, zeros first, then tensors.
bool place_in_shared(RunPlan& plan, const std::vector<std::int64_t>& most) {
  std::int64_t start = 16 * (static_cast<std::int64_t>(plan.constants.size()) + 1);
  const std::int64_t tensors = start;
  for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
    plan.tensors[t].most = static_cast<int>(std::min(most[t] + most[t] / 8 + 4, kMostRunBytes / 16));
    plan.tensors[t].start = start;
    start += std::int64_t{16} * (plan.tensors[t].most + 2);
  }
  if (start - tensors > kMostRunBytes) return false;
  plan.ends_start = start;
  plan.counter_start = plan.ends_start + plan.ends_bytes() * static_cast<std::int64_t>(plan.tensors.size());
  plan.list_start = plan.counter_start + 16;
  plan.made_start = plan.list_start + std::int64_t{8} * plan.threads * plan.turns;
  plan.table_start = plan.made_start + std::int64_t{16} * plan.threads * plan.turns;
  return true;
}

}  // namespace

std::optional<RunPlan> plan_runs(const Kernel& kernel, const Graph& graph, const Target& target) {
  if (kernel.outputs.size() != 1 || kernel.outputs[0].axes.empty()) return std::nullopt;
  const int element_bits = bits(kernel.outputs[0].type.dtype);
  if (element_bits < 8 || element_bits > 32) return std::nullopt;
  auto rows = pieces_of_rows(kernel, graph);
  if (!rows) return std::nullopt;
  RunPlan plan{.rows = *std::move(rows), .width = 128 / element_bits};
  const Kernel& by_rows = plan.rows.kernel;
  if (!add_leaves(plan) || !stores_in_order(by_rows) || reads_stored_places(by_rows, graph, plan)) return std::nullopt;
  const IndexExpr points = point_count(by_rows.pool, by_rows.outputs[0].axes);
  if (needs_wide_index(by_rows, graph, points + plan.block())) return std::nullopt;
  const std::int64_t runs = value_at_hint(points, graph.symbols) / plan.width;
  if (runs < kFewestRuns) return std::nullopt;
  choose_block(plan, runs, target);
  const std::int64_t rows_of_block = most_rows_of_block(plan, graph);
  plan.most_rows = static_cast<int>(rows_of_block);
  if (rows_of_block >= kRowsOfThread * plan.threads) return std::nullopt;
  find_main_pieces(plan, graph);
  BlockSampler sampler(graph, plan);
  BlockSampler::Seen seen = sampler.sample(0);
  for (const std::int64_t part : {2, 4, 8})
    if (BlockSampler::Seen near = sampler.sample(plan.block() / part); near.sectors < 0.97 * seen.sectors) {
      plan.far = plan.block() / part;
      seen = std::move(near);
    }
  plan.even = plan.far == 0 && lies_evenly(plan);
  if (!place_in_shared(plan, seen.most)) return std::nullopt;
  plan.sectors = seen.sectors;
  plan.instructions = instructions_of(plan, sampler.meetings(), rows_of_block);
  return plan;
}

}  // namespace fusec
