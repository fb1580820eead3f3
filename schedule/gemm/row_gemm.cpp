#include "schedule/gemm/row_gemm.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "analysis/kernel/copy_expr.h"
#include "analysis/kernel/linear_index.h"
#include "analysis/kernel/reduction_nesting.h"
#include "ir/type.h"

namespace fusec {
namespace {

using Axes = std::vector<std::uint32_t>;

constexpr std::int64_t kMostBytes = 96 * 1024;  // of shared memory, for all targets
// Bytes per second of an A100: from L2 and from memory.
constexpr double kCacheRate = 3e12, kMemoryRate = 1.5e12, kLaunch = 3e-6;
constexpr double kBlockRate = 56e9;  // bytes per second of one multiprocessor from L2
constexpr std::int64_t kMultiprocessors = 108;

class RowGemmFinder {
 public:
  explicit RowGemmFinder(const Kernel& kernel) : given_(kernel) {}

  std::optional<RowGemm> run() {
    if (!find_sums() || !some_row_may_fit() || !some_sum_is_at_columns() || !some_row_is_of_columns())
      return std::nullopt;
    share_k_axes();
    if (!find_product_at_columns() || !match_twins() || !rows_throughout() || !choose_rows()) return std::nullopt;
    return std::move(form_);
  }

 private:
  // Finds the sums of two operands that each have an axis that the other lacks (for a single row, only one has), and
  // the reductions around them.
  bool find_sums() {
    const ExprPool& pool = given_.pool;
    given_depends_ = dependences(pool);
    const std::vector<ExprId> order = reachable(pool, roots_of(given_));
    const auto holds_reduction = holding_reductions(pool, order);
    std::vector<std::uint8_t> is_sum(pool.size(), 0);
    for (const ExprId id : order) {
      const ExprNode& n = pool[id];
      if (n.op != ExprOp::kReduce) continue;
      const ExprNode& body = pool[n.args[0]];
      const bool is_product = body.op == ExprOp::kMul && pool[body.args[0]].op != ExprOp::kConstant &&
                              pool[body.args[1]].op != ExprOp::kConstant;
      if (!holds_reduction[n.args[0]] && n.reduction == Reduction::kSum && is_product &&
          each_alone(pool, given_depends_[body.args[0]], given_depends_[body.args[1]], n.axes)) {
        accumulators_.push_back(id);
        is_sum[id] = 1;
      } else {
        around_.push_back(id);
      }
    }
    const auto holds_sum = holding(pool, order, [&](ExprId id) { return is_sum[id] != 0; });
    return std::ranges::any_of(around_, [&](ExprId id) { return holds_sum[id] != 0; });
  }

  static bool each_alone(const ExprPool& pool, std::span<const std::uint32_t> left,
                         std::span<const std::uint32_t> right, const Axes& k) {
    const auto alone = [&](std::span<const std::uint32_t> a, std::span<const std::uint32_t> b) {
      return std::ranges::any_of(
          a, [&](std::uint32_t axis) { return !contains(b, axis) && !contains(k, axis) && !pool.extent(axis).is(1); });
    };
    const auto is_one_row = [&](std::span<const std::uint32_t> a) {
      return std::ranges::all_of(a, [&](std::uint32_t axis) { return contains(k, axis) || pool.extent(axis).is(1); });
    };
    return (alone(left, right) || is_one_row(left)) && (alone(right, left) || is_one_row(right)) &&
           (alone(left, right) || alone(right, left));
  }

  // True if the rows of some reduction could fit a block. This check is cheaper than match_twins() and choose_rows(),
  // which need the rewritten kernel. Extents that depend on other axes may still change.
  bool some_row_may_fit() const {
    constexpr std::int64_t kLeastBytesOfColumn = 16 * 4;  // the fewest rows, of one accumulator
    const ExprPool& pool = given_.pool;
    return std::ranges::any_of(around_, [&](ExprId id) {
      const Axes& axes = pool[id].axes;
      if (!std::ranges::all_of(axes, [&](std::uint32_t a) { return over_symbols(pool.extent(a)); })) return true;
      const auto columns = point_count(pool, axes).as_constant();
      return columns && *columns <= kMostBytes / kLeastBytesOfColumn;
    });
  }

  // True if some sum depends on axes of the output alone. Replacing axes of reductions does not change that.
  bool some_sum_is_at_columns() const {
    const Axes& axes = given_.outputs[0].axes;
    return std::ranges::any_of(accumulators_, [&](ExprId id) {
      return std::ranges::all_of(given_depends_[id], [&](std::uint32_t a) { return contains(axes, a); });
    });
  }

  // True if some reduction around the sums has extents that output axes have, too: match_twins() needs the columns'.
  bool some_row_is_of_columns() const {
    const ExprPool& pool = given_.pool;
    const auto is_of_output = [&](std::uint32_t axis) {
      return std::ranges::any_of(given_.outputs[0].axes,
                                 [&](std::uint32_t a) { return pool.extent(a) == pool.extent(axis); });
    };
    return std::ranges::any_of(around_, [&](ExprId id) {
      const Axes& axes = pool[id].axes;
      return std::ranges::all_of(axes, is_of_output) ||
             !std::ranges::all_of(axes, [&](std::uint32_t a) { return over_symbols(pool.extent(a)); });
    });
  }

  // Gives sums over equal extents of K the same axes, and also the reductions around them.
  void share_k_axes() {
    const std::size_t sums = accumulators_.size();
    std::vector<ExprId> follow = accumulators_;
    follow.insert(follow.end(), around_.begin(), around_.end());
    form_.kernel = change_axes(
        given_,
        [&](ExprPool& pool, ExprCopier& copier) {
          AxisChange change = same_axes(given_, pool);
          for (const auto* reductions : {&accumulators_, &around_}) {
            std::map<std::vector<IndexExpr>, std::vector<IndexExpr>> shared;
            for (const ExprId id : *reductions) {
              const Axes& axes = given_.pool[id].axes;
              std::vector<IndexExpr> extents;
              for (const std::uint32_t a : axes) extents.push_back(given_.pool.extent(a));
              if (std::ranges::any_of(extents, [](const IndexExpr& e) {
                    return std::ranges::any_of(variables_of(e),
                                               [](Variable v) { return v.kind != Variable::Kind::kSymbol; });
                  }))
                continue;
              std::vector<IndexExpr>& same = shared[extents];
              if (same.empty())
                for (const IndexExpr& e : extents) same.push_back(IndexExpr::axis(pool.new_axis(e)));
              for (std::size_t i = 0; i < axes.size(); ++i) copier.axis[axes[i]] = same[i];
            }
          }
          return change;
        },
        follow);
    accumulators_.assign(follow.begin(), follow.begin() + static_cast<std::ptrdiff_t>(sums));
    around_.assign(follow.begin() + static_cast<std::ptrdiff_t>(sums), follow.end());
    for (auto* ids : {&accumulators_, &around_}) {
      std::ranges::sort(*ids);
      ids->erase(std::unique(ids->begin(), ids->end()), ids->end());
    }
    depends_ = dependences(form_.kernel.pool);
  }

  const ExprPool& pool() const { return form_.kernel.pool; }

  // Finds the contraction of the sums at the output's columns, as a kernel of its own.
  bool find_product_at_columns() {
    const KernelOutput& output = form_.kernel.outputs[0];
    for (const KernelOutput& o : form_.kernel.outputs)
      if (o.axes != output.axes) return false;
    Kernel alone;
    alone.pool = form_.kernel.pool;
    for (const ExprId id : accumulators_)
      if (std::ranges::all_of(depends_[id], [&](std::uint32_t a) { return contains(output.axes, a); }))
        alone.outputs.push_back({output.value, output.type, output.axes, id, output.index});
    if (alone.outputs.empty()) return false;
    ContractionMatch answer = find_contraction(alone, true);
    if (!answer.contraction || answer.kernel || !answer.contraction->row_values.empty()) return false;
    form_.contraction = std::move(*answer.contraction);
    leave_columns_to_rows();
    return term_count(form_.contraction) <= 2;
  }

  // Outer axes that only the right operand has ([3, 1, m, k] times [2, k, n]) become batch if rows are reduced over the
  // rest.
  void leave_columns_to_rows() {
    Axes& columns = form_.contraction.columns;
    for (const ExprId id : around_) {
      const Axes& axes = pool()[id].axes;
      if (axes.size() >= columns.size()) continue;
      const auto inner = columns.end() - static_cast<std::ptrdiff_t>(axes.size());
      const bool same = std::equal(axes.begin(), axes.end(), inner, [&](std::uint32_t a, std::uint32_t c) {
        return pool().extent(a) == pool().extent(c);
      });
      if (!same) continue;
      form_.contraction.batch.insert(form_.contraction.batch.end(), columns.begin(), inner);
      columns.erase(columns.begin(), inner);
      return;
    }
  }

  bool is_at_columns(ExprId sum) const {
    for (const ContractionLoop& loop : form_.contraction.loops)
      for (const ContractionTerm& term : loop.terms)
        if (term.reduction == sum) return true;
    return false;
  }

  // Every other sum must equal one of these sums with the columns replaced by the reduced axes.
  bool match_twins() {
    std::vector<IndexExpr> extents;
    for (const std::uint32_t a : form_.contraction.columns) extents.push_back(pool().extent(a));
    for (const ExprId id : around_) {
      const Axes& axes = pool()[id].axes;
      std::vector<IndexExpr> own;
      for (const std::uint32_t a : axes) own.push_back(pool().extent(a));
      if (own == extents) form_.reduced = axes;
    }
    if (form_.reduced.empty()) return false;
    ExprPool common(pool().bounds());
    std::map<ExprId, ExprId> at_columns;  // by id in the common pool
    const std::vector<IndexExpr> axes = common_axes(common);
    for (const ExprId sum : accumulators_)
      if (is_at_columns(sum)) at_columns[in_common(common, axes, sum, form_.contraction.columns)] = sum;
    for (const ExprId sum : accumulators_) {
      if (is_at_columns(sum)) continue;
      if (std::ranges::any_of(form_.contraction.columns, [&](std::uint32_t a) { return contains(depends_[sum], a); }))
        return false;
      const auto twin = at_columns.find(in_common(common, axes, sum, form_.reduced));
      if (twin == at_columns.end()) return false;
      form_.accumulator_at_columns[sum] = twin->second;
    }
    return !form_.accumulator_at_columns.empty();
  }

  // Maps the axes of this pool to axes of the common pool.
  std::vector<IndexExpr> common_axes(ExprPool& common) const {
    std::vector<IndexExpr> axes;
    for (const IndexExpr& extent : pool().bounds().axes) axes.push_back(IndexExpr::axis(common.new_axis(extent)));
    return axes;
  }

  ExprId in_common(ExprPool& common, const std::vector<IndexExpr>& axes, ExprId sum, const Axes& columns) const {
    ExprCopier copier(pool(), common);
    for (std::size_t a = 0; a < axes.size(); ++a) copier.axis[a] = axes[a];
    for (std::size_t i = 0; i < columns.size(); ++i) copier.axis[columns[i]] = axes[form_.contraction.columns[i]];
    return copier.copy(sum);
  }

  // The reductions around the sums must depend on rows only.
  bool rows_throughout() const {
    for (const ExprId id : around_)
      for (const std::uint32_t a : depends_[id])
        if (!contains(form_.contraction.rows, a) && !contains(form_.contraction.batch, a) &&
            !contains(form_.contraction.shared_rest, a))
          return false;
    return true;
  }

  std::int64_t at_hint(const Axes& axes) const {
    IndexExpr count = 1;
    for (const std::uint32_t a : axes) count *= pool().extent(a);
    return value_at_hint(count, pool().bounds().symbols);
  }

  // As many rows per block as fit, while every multiprocessor still has a block.
  bool choose_rows() {
    IndexExpr columns = 1;
    for (const std::uint32_t a : form_.contraction.columns) columns *= pool().extent(a);
    const auto constant = columns.as_constant();
    if (!constant) return false;
    form_.columns = *constant;
    const std::int64_t rows = at_hint(form_.contraction.rows) * at_hint(form_.contraction.batch);
    form_.rows = 16;
    if (tiles_of(form_).bytes > kMostBytes) return false;
    for (const int more : {32, 64})
      if (rows / more >= kMultiprocessors && bytes_of(more) <= kMostBytes) form_.rows = more;
    return is_worth_it(rows);
  }

  std::int64_t bytes_of(int rows) {
    const int before = std::exchange(form_.rows, rows);
    const std::int64_t bytes = tiles_of(form_).bytes;
    form_.rows = before;
    return bytes;
  }

  // Compares extra reads of the right operands (fewer rows per block than tiles of 64) with the stores and loads of the
  // rows that are saved.
  bool is_worth_it(std::int64_t rows) const {
    double read = 0;
    for (const ContractionLoop& loop : form_.contraction.loops)
      read += static_cast<double>(at_hint(loop.k) * form_.columns) * static_cast<double>(loop.right.size()) *
              (form_.contraction.tensor_dtype ? 2 : 4);
    const auto blocks = [&](int of) { return static_cast<double>((rows + of - 1) / of); };
    const double more = (blocks(form_.rows) - blocks(64)) * read / kCacheRate;
    const double stored = static_cast<double>(rows * form_.columns * bits(form_.kernel.outputs[0].type.dtype)) / 8;
    const double separate = 2 * stored / kMemoryRate + kLaunch;
    return more <= separate || (may_be_pipelined() && pipelined_is_worth_it(static_cast<double>(rows), separate));
  }

  // Compares tiles of whole rows with square tiles that go through memory: bytes per block times blocks per
  // multiprocessor.
  bool pipelined_is_worth_it(double rows, double separate) const {
    double whole = std::numeric_limits<double>::infinity();
    const double columns = static_cast<double>(form_.columns);
    for (const double of : {16, 32, 64}) whole = std::min(whole, seconds_of_tiles(std::ceil(rows / of), of + columns));
    return whole <= seconds_of_tiles(std::ceil(rows / 64) * std::ceil(columns / 64), 128) + separate;
  }
  double seconds_of_tiles(double tiles, double lines) const {
    double bytes = 0;
    for (const ContractionLoop& loop : form_.contraction.loops)
      bytes += static_cast<double>(at_hint(loop.k)) * lines * (form_.contraction.tensor_dtype ? 2 : 4);
    return std::ceil(tiles / kMultiprocessors) * bytes / kBlockRate;
  }
  bool may_be_pipelined() const {
    const auto is_stored = [&](ExprId operand) {
      while (pool()[operand].op == ExprOp::kConvert) operand = pool()[operand].args[0];
      return pool()[operand].op == ExprOp::kLoad;
    };
    // A large K with long rows is left to square tiles, and on sm_90a to warpgroups.
    constexpr std::int64_t kWide = 256, kDeep = 1024;
    return form_.columns <= kMaxRowGemmColumns &&
           std::ranges::all_of(form_.contraction.loops, [&](const ContractionLoop& loop) {
             return (form_.columns <= kWide || at_hint(loop.k) <= kDeep) && std::ranges::all_of(loop.left, is_stored) &&
                    std::ranges::all_of(loop.right, is_stored);
           });
  }

  const Kernel& given_;
  std::vector<ExprId> accumulators_, around_;
  Dependences given_depends_, depends_;  // by expression of `given_`, of `form_.kernel`
  RowGemm form_;
};

}  // namespace

RowGemmTiles tiles_of(const RowGemm& form) {
  RowGemmTiles tiles{.block = tiles_of(form.kernel.pool, form.contraction)};
  ContractionTiles& block = tiles.block;
  const int columns = static_cast<int>(form.columns);
  constexpr int kOfWarp = 32, kMost = 256;  // columns on tensor cores
  block.rows = block.warp_rows = form.rows;
  block.threads = 256;
  if (block.tensor_cores) block.columns = std::min(kMost, (columns + kOfWarp - 1) / kOfWarp * kOfWarp);
  // Avoids bank conflicts between four rows of eight elements, or two rows of 16.
  const int wanted = block.tensor_cores ? 8 : 16;
  tiles.row_stride = columns + (wanted + 32 - columns % 32) % 32;
  std::size_t left = 0, right = 0;
  for (const ContractionLoop& loop : form.contraction.loops) {
    left = std::max(left, loop.left.size());
    right = std::max(right, loop.right.size());
  }
  const auto elements = static_cast<std::int64_t>(left) * block.elements(block.rows) +
                        static_cast<std::int64_t>(right) * block.elements(block.columns);
  const int size = block.wide ? 8 : 4;
  tiles.bytes = static_cast<std::int64_t>(term_count(form.contraction)) * form.rows * tiles.row_stride * size +
                elements * (block.tensor_cores ? 2 : size);
  return tiles;
}

std::optional<GemmForm> find_pipelined_row_gemm(const Graph& graph, const RowGemm& form, const Target& target) {
  if (form.columns > kMaxRowGemmColumns) return std::nullopt;
  auto found = find_gemm(graph, form.kernel, form.contraction, target, true);
  // The row epilogue expects float accumulators in shared memory, and no groups.
  if (found && (!found->float_accumulators || found->groups)) return std::nullopt;
  return found;
}

std::optional<RowGemm> find_row_gemm(const Kernel& kernel) {
  return RowGemmFinder(kernel).run();
}

}  // namespace fusec
