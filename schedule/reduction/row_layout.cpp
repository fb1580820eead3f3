#include "schedule/reduction/row_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "analysis/kernel/loads.h"
#include "ir/type.h"
#include "schedule/reduction/blocks_per_row.h"
#include "schedule/reduction/extra_outputs.h"
#include "schedule/reduction/row_one_pass.h"
#include "schedule/reduction/row_values.h"

namespace fusec {
namespace {

int power_of_two_at_least(std::int64_t n, int low, int high) {
  int p = low;
  while (p < high && p < n) p *= 2;
  return p;
}

// Lanes per row if rows are contiguous and lanes take a vector each; else 0.
int lanes_by_vectors(const RowForm& form, const Direction& direction, std::int64_t length, double bytes) {
  int widest = static_cast<int>(8 * bytes);
  for (const KernelOutput& output : form.kernel.outputs)
    if (!is_of_rows(form, output)) widest = std::max(widest, bits(output.type.dtype));
  if (!direction.whole_rows || !fits_one_lane(length, widest)) return 0;
  return std::max(1, static_cast<int>(length) / elements_of_vector(widest));
}

// Lanes per row for several short rows per warp. Rows must start at sector boundaries: a part of a sector per row would
// cause overfetch.
int lanes_of_row(const RowForm& form, std::int64_t length, std::int64_t rows, double bytes, const Target& target) {
  const ExprPool& pool = form.kernel.pool;
  // For rows shorter than a warp, a warp's accesses cover neighbouring rows and so whole sectors.
  const int at_most = power_of_two_at_least(length, 1, 32);
  const auto whole_sectors = [&](const IndexExpr& extent) {
    return proves_multiple_of(extent, static_cast<std::int64_t>(32 / bytes), pool.bounds());
  };
  for (const ExprId r : form.reductions)
    if (!whole_sectors(point_count(pool, pool[r].axes))) return at_most;
  if (!form.columns.empty() && !whole_sectors(point_count(pool, form.columns))) return at_most;
  // Every lane has at least one vector.
  const double of_vector = std::min(16.0, 8 * bytes);
  const auto of_row = static_cast<std::int64_t>(static_cast<double>(length) * bytes / of_vector);
  const int vectors = power_of_two_at_least(of_row, 2, 32);
  int lanes = power_of_two_at_least(length / 32, std::min(4, vectors), 32);
  while (lanes < vectors && rows * lanes < 32 * static_cast<std::int64_t>(target.multiprocessors)) lanes *= 2;
  return lanes;
}

std::int64_t longest_possible(const RowForm& form) {
  const ExprPool& pool = form.kernel.pool;
  std::int64_t most = range_of(point_count(pool, form.columns), pool.bounds()).max;
  for (const ExprId r : form.reductions)
    most = std::max(most, range_of(point_count(pool, pool[r].axes), pool.bounds()).max);
  return most * form.elements_per_column;
}

// Bytes of operands along columns that are the same for all rows.
double broadcast_bytes(const RowForm& form, double widest) {
  const ExprPool& pool = form.kernel.pool;
  const auto at_vectors = static_cast<std::int64_t>(16 / std::min(16.0, widest));
  if (form.rows.empty() || proves_multiple_of(point_count(pool, form.columns), at_vectors, pool.bounds())) return 0;
  const auto depends = dependences(pool);
  std::set<ValueId> tensors;
  double bytes = 0;
  for (const ExprId id : outside_reductions(form, roots_of(form.kernel))) {
    const ExprNode& n = pool[id];
    const auto runs = [&](std::uint32_t a) { return std::ranges::binary_search(depends[id], a); };
    if (n.op != ExprOp::kLoad || std::ranges::none_of(form.columns, runs) || std::ranges::any_of(form.rows, runs))
      continue;
    if (tensors.insert(n.source).second) bytes += bits(n.dtype) / 8.0;
  }
  return bytes;
}

// Counts the bytes of an element: of the widest operand, of all operands along rows, of what is kept between loops
// (operands or computed values), and of operands shared by unaligned rows.
void count_bytes(RowsToReduce& work, const RowForm& form, const Graph& graph) {
  const ExprPool& pool = form.kernel.pool;
  const auto depends = dependences(pool);
  const auto is_of_row = [&](ExprId id) {
    const auto runs = [&](std::uint32_t a) { return std::ranges::binary_search(depends[id], a); };
    const bool along =
        std::ranges::any_of(form.reductions, [&](ExprId r) { return std::ranges::any_of(pool[r].axes, runs); });
    return along && (form.rows.empty() || std::ranges::any_of(form.rows, runs));
  };
  work.bytes = 1;
  work.bytes_read = 0;
  std::set<ValueId> tensors;
  double value = 4;
  for (const ExprId id : reachable(pool, form.reductions)) {
    const ExprNode& n = pool[id];
    if (n.op != ExprOp::kLoad) continue;
    work.bytes = std::max(work.bytes, bits(n.dtype) / 8.0);
    if (!is_of_row(id) || !tensors.insert(n.source).second) continue;
    work.bytes_read += bits(n.dtype) / 8.0;
    value = std::max(value, bits(n.dtype) / 8.0);
  }
  if (work.bytes_read == 0) work.bytes_read = work.bytes;
  work.on_chip_bytes = std::min(work.bytes_read, value * std::max(1, values_between_loops(form, graph)));
  work.broadcast_bytes = broadcast_bytes(form, work.bytes);
}

}  // namespace

Direction direction_of(const RowForm& form, const Graph& graph) {
  Direction direction;
  const ExprPool& pool = form.kernel.pool;
  const auto depends = dependences(pool);
  IndexExpr flat_row = 0;
  for (const std::uint32_t a : form.rows) flat_row = flat_row * pool.extent(a) + IndexExpr::axis(a);
  direction.whole_rows = !form.rows.empty();
  for (const ExprId r : form.reductions) {
    std::vector<std::vector<std::uint32_t>> lacking;
    for (const ExprId id : reachable(pool, std::vector<ExprId>{pool[r].args[0]})) {
      const ExprNode& n = pool[id];
      if (n.op != ExprOp::kLoad) continue;
      const IndexExpr at = position_of(graph, pool, id);
      const std::vector<std::uint32_t>& axes = pool[r].axes;
      // A condition can restrict a load to one element of the reduced axis.
      bool reduced = false, runs = false, along_reduction = false, some_row = form.rows.empty();
      const std::vector<Variable> named = variables_of(at);
      std::vector<std::uint32_t> lacks;
      for (const std::uint32_t a : axes) {
        reduced = reduced || std::binary_search(depends[id].begin(), depends[id].end(), a);
        runs = runs || std::ranges::find(named, Variable{Variable::Kind::kAxis, a}) != named.end();
        along_reduction = along_reduction || coefficient_of(at, {Variable::Kind::kAxis, a}) == 1;
      }
      for (const std::uint32_t a : form.rows) {
        const bool here = std::binary_search(depends[id].begin(), depends[id].end(), a);
        some_row = some_row || here;
        if (!here) lacks.push_back(a);
        if (runs && coefficient_of(at, {Variable::Kind::kAxis, a}) == 1) {
          ++direction.along_rows;
          direction.contiguous_row = a;
        }
      }
      // A vector shared by all rows has no influence next to a matrix.
      if (along_reduction && some_row) ++direction.along_reduction;
      if (reduced && some_row && direction.whole_rows)
        direction.whole_rows =
            axes.size() == 1 &&
            simplify(at - flat_row * pool.extent(axes[0]) - IndexExpr::axis(axes[0]), pool.bounds()).is(0);
      if (reduced && some_row) lacking.push_back(std::move(lacks));
    }
    for (const auto& a : lacking)
      for (const auto& b : lacking) direction.product = direction.product || (!a.empty() && !b.empty() && a != b);
  }
  return direction;
}

namespace {

constexpr int kMostElementsOfThread = 64;  // elements

}  // namespace

int most_elements_of_thread(const RowForm& form, const Graph& graph) {
  return std::clamp(kMaxUnrolledInstructions * form.elements_per_column / std::max(1, code_of_row(form, graph)), 4,
                    kMostElementsOfThread);
}

namespace {

RowLayout of_warps(int warps, int lanes) {
  return {ReductionGroup::kWarp, 32 * warps, warps * (32 / lanes), lanes};
}

RowLayout choose_layout(const RowForm& form, const Direction& direction, const Graph& graph, const Target& target) {
  const ExprPool& pool = form.kernel.pool;
  const Symbols& symbols = pool.bounds().symbols;
  std::int64_t longest = form.columns.empty() ? 1 : value_at_hint(point_count(pool, form.columns), symbols);
  for (const ExprId r : form.reductions)
    longest = std::max(longest, value_at_hint(point_count(pool, pool[r].axes), symbols));
  longest *= form.elements_per_column;
  const std::int64_t rows = std::max<std::int64_t>(1, value_at_hint(point_count(pool, form.rows), symbols));
  const int reductions = stage_count(form);
  RowsToReduce work{.blocks = rows,
                    .length = longest,
                    .stages = reductions,
                    .passes = row_one_pass(form) ? 1 : reductions,
                    .columns = !extra_outputs_if_read_once(form).columns.empty(),
                    .functions = functions_of_row(form, graph)};
  count_bytes(work, form, graph);
  if (direction.along_rows > direction.along_reduction && !form.rows.empty()) {
    // Few rows: more threads per row.
    work.blocks = (rows + kColumnRows - 1) / kColumnRows;
    work.length = longest * kColumnRows;
    work.rows_per_block = kColumnRows;
    const bool few = work.blocks < 2 * target.multiprocessors;
    const int parts = power_of_two_at_least(longest / 8, 1, few ? target.strip_threads / kColumnRows : 8);
    RowLayout layout{ReductionGroup::kColumn, kColumnRows * parts, kColumnRows, parts};
    layout.chunks = chunks_of_columns(work, target, longest <= kOnChipOfColumns ? 1 : 0);
    return layout;
  }
  const int most_elements = most_elements_of_thread(form, graph);
  // Loops over rows that registers hold are unrolled for the longest possible row.
  if (most_elements < kMostElementsOfThread && longest_possible(form) <= kOnChipOfBlock)
    longest = longest_possible(form);
  if (longest <= std::min(1024, 32 * most_elements) && !form.rows.empty()) {
    int lanes = lanes_by_vectors(form, direction, longest / form.elements_per_column, work.bytes);
    if (lanes == 0) lanes = lanes_of_row(form, longest / form.elements_per_column, rows, work.bytes, target);
    lanes = std::max(lanes, power_of_two_at_least((longest + most_elements - 1) / most_elements, 1, 32));
    // Fewer rows per block if there would be fewer blocks than multiprocessors.
    int warps = 8;
    while (warps > 1 && rows * lanes / (32 * warps) < target.multiprocessors) warps /= 2;
    return of_warps(warps, lanes);
  }
  RowLayout layout;
  const BlocksPerRow per_row = choose_blocks_per_row(work, target);
  if (per_row.chunks > 1) {
    layout = {.threads = 256, .parts = 256, .chunks = per_row.chunks, .on_chip = per_row.on_chip};
    return layout;
  }
  layout.cluster = per_row.cluster;
  layout.resident_blocks = per_row.resident_blocks;
  layout.on_chip = per_row.on_chip;
  const int blocks = layout.blocks_sharing_row();
  // Many elements per thread make the reduction among threads cheap; the longest rows that registers hold get twice as
  // many.
  const std::int64_t of_block = (longest + blocks - 1) / blocks;
  const auto words = static_cast<std::int64_t>(static_cast<double>(of_block) * std::max(1.0, work.on_chip_bytes / 4));
  layout.threads =
      words <= 32 * 256 ? power_of_two_at_least(words / 32, 64, 256) : power_of_two_at_least(words / 64, 256, 1024);
  layout.threads = power_of_two_at_least(of_block / most_elements, layout.threads, 1024);
  // Combining several tensors needs registers in addition to those for 64 elements.
  if (work.bytes_read > work.bytes && of_block > 56 * std::int64_t{layout.threads} && layout.threads < 1024)
    layout.threads *= 2;
  // A length known only at launch is kept according to its bound: in registers, or, if that needs far more threads than
  // the expected length, in dynamic shared memory of the launch's size (one block per multiprocessor).
  constexpr std::int64_t kFarLonger = 4;
  const std::int64_t most = longest_possible(form), of_threads = 64 * std::int64_t{layout.threads} * blocks;
  const bool as_expected = blocks == 1 && most >= kFarLonger * of_threads;
  if (most <= kOnChipOfBlock * blocks && !as_expected)
    while (layout.threads < 1024 && most > 64 * std::int64_t{layout.threads} * blocks) layout.threads *= 2;
  layout.parts = layout.threads * blocks;
  return layout;
}

RowLayout of_block(int threads, int cluster, int resident_blocks = 1) {
  return {.reduction_group = ReductionGroup::kBlock,
          .threads = threads,
          .parts = threads * cluster * resident_blocks,
          .cluster = cluster,
          .resident_blocks = resident_blocks};
}

}  // namespace

std::vector<RowLayout> row_layouts(const RowForm& form, const Direction& direction, const Graph& graph,
                                   const Target& target) {
  const RowLayout predicted = choose_layout(form, direction, graph, target);
  std::vector<RowLayout> layouts = {predicted};
  const auto add = [&](const RowLayout& layout) {
    if (std::ranges::find(layouts, layout) == layouts.end()) layouts.push_back(layout);
  };
  if (predicted.chunks > 1) {
    for (const int chunks : {predicted.chunks / 2, predicted.chunks * 2}) {
      RowLayout other = predicted;
      other.chunks = chunks;
      if (chunks > 1) add(other);
    }
  } else if (predicted.reduction_group == ReductionGroup::kColumn) {
    for (const int parts : {predicted.parts / 2, predicted.parts * 2})
      if (parts >= 1 && parts <= 32) add({ReductionGroup::kColumn, kColumnRows * parts, kColumnRows, parts});
  } else if (predicted.reduction_group == ReductionGroup::kWarp) {
    for (int lanes = predicted.parts; lanes <= 32; lanes *= 2)
      for (const int warps : {2, 4, 8}) add(of_warps(warps, lanes));
    add(of_block(64, 1));
    add(of_block(128, 1));
  } else {
    for (const int threads : {predicted.threads / 2, predicted.threads * 2, predicted.threads * 4})
      if (threads >= 64 && threads <= 1024) add(of_block(threads, predicted.cluster, predicted.resident_blocks));
    if (predicted.resident_blocks > 1)
      for (const int resident_blocks : {predicted.resident_blocks - 1, predicted.resident_blocks + 1})
        if (resident_blocks <= max_resident_blocks(target)) add(of_block(predicted.threads, 1, resident_blocks));
    if (target.compute_capability >= 90 && target.compute_capability < 120)
      for (const int cluster : {predicted.cluster / 2, predicted.cluster * 2})
        if (cluster >= 1 && cluster <= 8) add(of_block(predicted.threads, cluster));
  }
  return layouts;
}

std::string name_of(const RowLayout& layout) {
  if (layout.chunks > 1) return fmt::format("{} threads of {} blocks a row", layout.threads, layout.chunks);
  if (layout.reduction_group == ReductionGroup::kColumn)
    return fmt::format("{} threads a row, rows side by side", layout.parts);
  if (layout.reduction_group == ReductionGroup::kWarp)
    return fmt::format("{} rows a block, {} threads each", layout.rows, layout.parts);
  if (layout.resident_blocks > 1)
    return fmt::format("{} threads of each of {} waiting blocks a row", layout.threads, layout.resident_blocks);
  if (layout.cluster == 1) return fmt::format("{} threads a row", layout.threads);
  return fmt::format("{} threads of each of {} clustered blocks a row", layout.threads, layout.cluster);
}

int launches_of(const RowForm& form, const RowLayout& layout) {
  if (layout.chunks == 1) return layout.resident_blocks > 1 ? 2 : 1;
  return row_one_pass(form) ? 2 : 1 + stage_count(form);
}

}  // namespace fusec
