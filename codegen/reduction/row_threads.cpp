#include "codegen/reduction/row_threads.h"

#include <fmt/format.h>

#include "codegen/access/direct.h"
#include "codegen/reduction/resident_blocks.h"
#include "codegen/reduction/row_partials.h"

namespace fusec {

void RowThreads::open(const IndexExpr& rows, bool chunked) {
  std::string number = "blockIdx.x";
  if (layout_.resident_blocks > 1) {
    writer_.use("cohort_reduce");
    arrived_ = resident_block_counters(writer_, form_);
    number = writer_.unique("ticket");
    writer_.line("const unsigned {} = cohort_ticket({});", number, arrived_);
  }
  std::string block = (writer_.wide() ? "(long long)" : "") + number;
  std::string of_row = std::to_string(layout_.blocks_sharing_row() * (chunked ? layout_.chunks : 1));
  chunk_count_ = std::to_string(layout_.chunks);
  if (const IndexExpr count = chunks(); !count.as_constant()) {
    chunk_count_ = writer_.unique("chunks");
    writer_.line("const int {} = (int)({});  // blocks of a row", chunk_count_, emitter_.index(count));
    if (chunked) of_row = chunk_count_;
  }
  if (of_row != "1") {
    chunk_ = writer_.unique(layout_.blocks_sharing_row() > 1 ? "rank" : "chunk");
    writer_.line("const int {} = {} % {};  // of its row's blocks", chunk_, number, of_row);
    block += fmt::format(" / {}", of_row);
  }
  part_ = writer_.unique(layout_.reduction_group == ReductionGroup::kColumn ? "part" : "lane");
  switch (layout_.reduction_group) {
    case ReductionGroup::kWarp:
      open_warp(block, rows);
      break;
    case ReductionGroup::kBlock:
      open_block(block);
      break;
    case ReductionGroup::kColumn:
      writer_.line("const int {} = threadIdx.x / {};", part_, kColumnRows);
      bind_valid_row(fmt::format("{} * {} + threadIdx.x % {}", block, kColumnRows, kColumnRows), rows);
      break;
  }
  bind_flat(emitter_, form_.rows, row_);
}

IndexExpr RowThreads::chunks() const {
  constexpr int kMinIterations = 8;
  const ExprPool& pool = form_.kernel.pool;
  const IndexExpr length = point_count(pool, pool[form_.reductions.back()].axes);
  if (layout_.chunks == 1 || layout_.fixed_chunks || layout_.reduction_group != ReductionGroup::kColumn ||
      length.as_constant())
    return layout_.chunks;
  const IndexExpr groups = simplify(ceil_div(point_count(pool, form_.rows), layout_.rows), pool.bounds());
  return chunks_of_launch(layout_.chunks, length, std::int64_t{layout_.parts} * kMinIterations, groups, pool.bounds());
}

void RowThreads::declare_lane() {
  part_ = writer_.declared("const int", "lane",
                           layout_.reduction_group == ReductionGroup::kWarp ? "threadIdx.x % 32" : "threadIdx.x");
}

std::string RowThreads::first_sequential_row() const {
  return layout_.reduction_group == ReductionGroup::kWarp
             ? fmt::format("blockIdx.x * {} + threadIdx.x / 32", layout_.rows)
             : "blockIdx.x";
}

void RowThreads::open_sequential_rows(const IndexExpr& rows) {
  row_ = writer_.unique("row");
  writer_.line("#pragma unroll 1");
  writer_.open("for ({0} {1} = {2}; {1} < {3}; {1} += {4})", writer_.index_type(), row_, first_sequential_row(),
               emitter_.index_text().tight(rows), layout_.blocks * layout_.rows);
  bind_flat(emitter_, form_.rows, row_);
}

void RowThreads::open_warp(const std::string& block, const IndexExpr& rows) {
  if (32 % layout_.parts != 0) return open_odd_lanes(block, rows);
  writer_.line("const int {} = threadIdx.x % {};", part_, layout_.parts);
  const std::string row = fmt::format("{} * {} + threadIdx.x / {}", block, layout_.rows, layout_.parts);
  const Bounds& bounds = form_.kernel.pool.bounds();
  if (!proves_multiple_of(rows, 32 / layout_.parts, bounds)) return bind_valid_row(row, rows);
  row_ = writer_.declared("const " + writer_.index_type(), "row", row);
  if (!proves_multiple_of(rows, layout_.rows, bounds))
    writer_.line("if ({} >= {}) return;", row_, emitter_.index_text().tight(rows));
}

// Rows with an odd number of lanes: the last lanes of a warp have no row and duplicate the warp's last row.
void RowThreads::open_odd_lanes(const std::string& block, const IndexExpr& rows) {
  const int lanes = layout_.parts, of_warp = 32 / lanes;
  writer_.line("const int {} = threadIdx.x % 32 % {};", part_, lanes);
  const std::string first = fmt::format("{} * {} + threadIdx.x / 32 * {}", block, layout_.rows, of_warp);
  if (of_warp == 1) return bind_valid_row(first, rows, fmt::format("threadIdx.x % 32 < {}", lanes));
  const std::string of_row = writer_.declared("const int", "row_of_warp", fmt::format("threadIdx.x % 32 / {}", lanes));
  bind_valid_row(fmt::format("{} + min({}, {})", first, of_row, of_warp - 1), rows,
                 fmt::format("{} < {}", of_row, of_warp));
}

void RowThreads::open_block(const std::string& block) {
  writer_.line(layout_.blocks_sharing_row() > 1
                   ? fmt::format("const int {} = {} * {} + threadIdx.x;", part_, chunk_, layout_.threads)
                   : fmt::format("const int {} = threadIdx.x;", part_));
  if (layout_.cluster > 1) {
    writer_.use("cluster_reduce");
    writer_.line("cluster_arrive();");
  }
  if (form_.rows.empty()) return;
  row_ = writer_.declared("const " + writer_.index_type(), "row", block);
}

// Threads with a row past the end take the last row and store nothing, because the warp's reduction needs them. Threads
// excluded by `condition` keep the row that they asked for, in their own block: it may be in the buffer of the row's
// result.
void RowThreads::bind_valid_row(const std::string& text, const IndexExpr& rows, const std::string& condition) {
  const std::string type = writer_.index_type(), wanted = writer_.unique("wanted_row");
  const std::string limit = emitter_.index_text().tight(rows);
  active_ = writer_.unique("active");
  writer_.line("const {} {} = {};", type, wanted, text);
  writer_.line("const bool {} = {}{} < {};  // the others work along, and store nothing", active_,
               condition.empty() ? "" : condition + " && ", wanted, limit);
  row_ = writer_.unique("row");
  const std::string there = condition.empty() ? active_ : fmt::format("{} < {}", wanted, limit);
  writer_.line("const {} {} = {} ? {} : {} - 1;", type, row_, there, wanted, limit);
}

void RowThreads::reduce(const std::vector<ExprEmitter::Accumulator>& accumulators) {
  if (layout_.parts == 1) return;
  constexpr int kMostBytes = 16 * 1024;  // of shared memory with a partial result for each thread
  const bool by_thread = layout_.reduction_group == ReductionGroup::kColumn;
  // Lanes of one warp need no barrier, and ptxas overlaps their independent shuffles.
  const bool meet = layout_.reduction_group != ReductionGroup::kWarp;
  for (std::span<const ExprEmitter::Accumulator> left = accumulators; !left.empty();) {
    std::size_t count = 1;
    int bytes = bytes_of_partial(form_, left[0].reduction);
    while (meet && count < left.size()) {
      bytes += bytes_of_partial(form_, left[count].reduction);
      if (by_thread && layout_.threads * bytes > kMostBytes) break;
      ++count;
    }
    reduce_as_one(left.first(count));
    left = left.subspan(count);
  }
}

void RowThreads::reduce_as_one(std::span<const ExprEmitter::Accumulator> accumulators) {
  ExprEmitter::Accumulator all = accumulators.back();
  for (const ExprEmitter::Accumulator& a : accumulators)
    if (a.extreme) writer_.use("extreme_lanes");
  if (accumulators.size() == 1) return writer_.line("{} = {};", all.name, reduced(all));
  writer_.use("reduce_pairs");
  for (std::size_t i = accumulators.size() - 1; i-- > 0;) {
    const ExprEmitter::Accumulator& a = accumulators[i];
    all.name = fmt::format("pair({}, {})", a.name, all.name);
    all.combine = fmt::format("pairwise({}, {})", a.combine, all.combine);
    all.type = fmt::format("Pair<{}, {}>", a.type, all.type);
    if (bytes_of_partial(form_, a.reduction) > bytes_of_partial(form_, all.reduction)) all.reduction = a.reduction;
    all.extreme = all.extreme || a.extreme;
  }
  std::string from = writer_.declared("const auto", "results", reduced(all, accumulators.size()));
  for (std::size_t i = 0; i < accumulators.size(); ++i) {
    const bool last = i + 1 == accumulators.size();
    writer_.line("{} = {}{};", accumulators[i].name, from, last ? "" : ".first");
    from += ".second";
  }
}

// The text of the reduction of `count` accumulators as one.
std::string RowThreads::reduced(const ExprEmitter::Accumulator& a, std::size_t count) {
  writer_.use("combine");
  switch (layout_.reduction_group) {
    case ReductionGroup::kWarp:
      if (32 % layout_.parts != 0) {
        writer_.use(a.extreme ? "extreme_odd_lanes" : "tree_reduce");
        return fmt::format("tree_reduce<{}>({}, {})", layout_.parts, a.name, a.combine);
      }
      writer_.use("warp_reduce");
      return fmt::format("warp_reduce{}({}, {})", layout_.parts < 32 ? fmt::format("<{}>", layout_.parts) : "", a.name,
                         a.combine);
    case ReductionGroup::kBlock:
      writer_.use("block_reduce");
      if (layout_.cluster > 1)
        return fmt::format("cluster_reduce<{}, {}, {}>({}, {}, {})", layout_.threads, layout_.cluster,
                           block_reductions_++, a.name, a.combine, chunk_);
      if (layout_.resident_blocks > 1) return cohort_reduce(a, count);
      return fmt::format("block_reduce<{}, {}>({}, {})", layout_.threads, block_reductions_++, a.name, a.combine);
    case ReductionGroup::kColumn:
      writer_.use("column_reduce");
      return fmt::format("column_reduce<{}, {}>({}, {})", kColumnRows, layout_.parts, a.name, a.combine);
  }
  return {};
}

// Each reduction has separate memory for the partial results of the blocks.
std::string RowThreads::cohort_reduce(const ExprEmitter::Accumulator& a, std::size_t count) {
  const IndexExpr rows = point_count(form_.kernel.pool, form_.rows);
  const IndexExpr partials = rows * layout_.resident_blocks * static_cast<std::int64_t>(count);
  const std::string of_row = row_ == "0" ? "" : fmt::format(" + {} * {}", row_, layout_.resident_blocks);
  return fmt::format("cohort_reduce<{}, {}, {}>({}, {}, {}{}, {} + 1{}, {})", layout_.threads, layout_.resident_blocks,
                     block_reductions_++, a.name, a.combine, row_partials(writer_, form_, a, partials), of_row,
                     arrived_, row_ == "0" ? "" : " + " + row_, chunk_);
}

}  // namespace fusec
