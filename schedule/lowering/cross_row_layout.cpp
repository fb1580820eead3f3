#include "schedule/lowering/cross_row_layout.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <vector>

#include "analysis/kernel/loads.h"
#include "ir/type.h"
#include "schedule/cost/cost_model.h"

namespace fusec {
namespace {

constexpr std::int64_t kShortestRow = 128;
constexpr int kComputing = 40;                // registers per thread besides kept values and two per vector element
constexpr int kCopying = 4;                   // registers for the addresses of copies
constexpr int kMostOfLane = 32;               // elements per lane
constexpr int kMostRegistersOfThread = 232;   // registers
constexpr int kReducingBytes = 512;           // shared memory for partial results of reductions
constexpr int kReservedBytes = 1024;          // of each block's shared memory, for the driver
constexpr int kMaxRegisterWordsOfBlock = 80;  // registers for kept values, if a block takes one row

// What an element of a row costs a thread: 32-bit words of partial column results, of operands that differ from row to
// row, and of operands that all rows share.
struct ElementCost {
  int width = 1;  // elements per vector
  double results = 0, of_rows = 0, shared = 0;
  int most = 0;                                     // most elements per thread
  bool copies_rows = false, copies_shared = false;  // cp.async can copy their vectors

  // Elements, words and registers per thread if `parts` threads share a row.
  int of_thread(std::int64_t length, int parts) const {
    const std::int64_t per_iteration = std::int64_t{parts} * width;
    return static_cast<int>((length + per_iteration - 1) / per_iteration) * width;
  }
  int kept_words(std::int64_t length, const RowLayout& layout) const {
    const double of_element = results + (layout.rows_ahead == 0 ? of_rows + shared : 0);
    return static_cast<int>(of_thread(length, layout.parts) * of_element) + layout.kept_words;
  }
  int registers(std::int64_t length, const RowLayout& layout) const {
    const int copying = layout.rows_ahead > 0 ? kCopying : 0;
    return (kept_words(length, layout) + kComputing + copying + 2 * width + 7) / 8 * 8;
  }
  // Shared memory of a block, in bytes.
  std::int64_t shared_bytes(std::int64_t length, const RowLayout& layout) const {
    if (layout.rows_ahead == 0) return 0;
    const double words = layout.rows_ahead * of_rows + (layout.kept_words == 0 ? shared : 0);
    return static_cast<std::int64_t>(4 * words * of_thread(length, layout.parts)) * layout.threads + kReducingBytes;
  }
};

ElementCost element_cost(const CrossRowReduction& cross_row, const Graph& graph) {
  const RowForm& form = cross_row.rows;
  const ExprPool& pool = form.kernel.pool;
  const auto depends = dependences(pool);
  ElementCost element{.results = static_cast<double>(cross_row.folded), .most = most_elements_of_thread(form, graph)};
  int widest = 8, widest_shared = 8, narrowest = 128;
  std::set<ValueId> seen;
  for (const ExprId id : reachable(pool, roots_of(form.kernel))) {
    const ExprNode& n = pool[id];
    const bool along = std::ranges::any_of(depends[id], [&](std::uint32_t a) { return a != form.rows[0]; });
    if (n.op != ExprOp::kLoad || !along) continue;
    const bool of_rows = std::ranges::binary_search(depends[id], form.rows[0]);
    int& widest_here = of_rows ? widest : widest_shared;
    widest_here = std::max(widest_here, bits(n.dtype));
    narrowest = std::min(narrowest, bits(n.dtype));
    if (!seen.insert(n.source).second) continue;
    (of_rows ? element.of_rows : element.shared) += bits(n.dtype) / 32.0;
  }
  for (const KernelOutput& output : form.kernel.outputs)
    if (!is_of_rows(form, output)) widest = std::max(widest, bits(output.type.dtype));
  const int width = elements_of_vector(widest);
  if (proves_multiple_of(pool.extent(form.columns[0]), width, pool.bounds())) element.width = width;
  element.copies_rows = element.width > 1 && narrowest * element.width >= 32;
  element.copies_shared = element.copies_rows && widest_shared * element.width <= 8 * kVectorBytes;
  return element;
}

// `of_rows` and `of_columns` are the work of the two separate kernels.
Work work_of_cross_row(const CrossRowReduction& cross_row, const ElementCost& element, const Work& of_rows,
                       const Work& of_columns, const Graph& graph) {
  const ExprPool& pool = cross_row.rows.kernel.pool;
  const RowLayout& layout = cross_row.layout;
  Work work = of_rows;
  work.read = work.written = 0;
  for (const ValueId v : inputs_of(cross_row.rows.kernel))
    work.read += static_cast<double>(bytes_at_hint(graph.tensor(v), graph.symbols));
  for (std::size_t i = 0; i + cross_row.folded < cross_row.rows.kernel.outputs.size(); ++i)
    work.written += static_cast<double>(bytes_at_hint(cross_row.rows.kernel.outputs[i].type, graph.symbols));
  const std::int64_t length = value_at_hint(pool.extent(cross_row.rows.columns[0]), graph.symbols);
  const double lines = 4.0 * static_cast<double>(length * layout.blocks) * static_cast<double>(cross_row.folded);
  work.read += lines;
  work.written += of_columns.written + lines;
  work.float32 += of_columns.float32;
  work.float64 += of_columns.float64;
  work.special += of_columns.special;
  work.sector_overfetch = 1;
  work.blocks = layout.blocks;
  work.threads = layout.threads;
  work.launches = 2;
  work.shared = static_cast<double>(element.shared_bytes(length, layout));
  work.registers = element.registers(length, layout);
  // Rows run one after the other: half of the time loads are in flight, of a row or of all rows ahead.
  const double loaded = 4 * (element.of_rows + element.shared) * cross_row.elements;
  work.in_flight_bytes = loaded * layout.threads * std::max(1, layout.rows_ahead) / 2;
  return work;
}

// Returns the candidate layouts, preferred ones first: a warp per row if it can keep what it needs of a row, then a
// block per row.
std::vector<RowLayout> possible_layouts(std::int64_t length, const ElementCost& element, const RowLayout& ahead) {
  std::vector<RowLayout> layouts;
  const auto add = [&](ReductionGroup group, int threads, int rows) {
    RowLayout layout = ahead;
    layout.reduction_group = group;
    layout.threads = threads;
    layout.rows = rows;
    layout.parts = threads / rows;
    const bool is_warp = group == ReductionGroup::kWarp;
    if (element.of_thread(length, layout.parts) > (is_warp ? std::min(element.most, kMostOfLane) : element.most) ||
        layout.parts * element.width > length)
      return;
    const bool fits = is_warp ? element.registers(length, layout) <= kMostRegistersOfThread
                              : element.kept_words(length, layout) <= kMaxRegisterWordsOfBlock;
    if (fits) layouts.push_back(layout);
  };
  for (const int warps : {8, 4, 16}) add(ReductionGroup::kWarp, kWarpLanes * warps, warps);
  for (const int threads : {256, 128, 512, 1024})
    if (layouts.size() < 3) add(ReductionGroup::kBlock, threads, 1);
  return layouts;
}

// Returns the layouts with each way to hold a row: copied ahead, or in registers; operands shared by all rows in
// registers or in shared memory.
std::vector<RowLayout> possible_copies(std::int64_t length, const ElementCost& element) {
  std::vector<RowLayout> layouts;
  constexpr int kMostAhead = 2;
  for (int ahead = kMostAhead; element.copies_rows && ahead > 0; --ahead)
    for (const bool keeps_shared : {true, false}) {
      if (keeps_shared ? element.shared == 0 : !element.copies_shared) continue;
      for (RowLayout layout : possible_layouts(length, element, {.rows_ahead = ahead})) {
        if (keeps_shared)
          layout.kept_words = static_cast<int>(element.shared * element.of_thread(length, layout.parts));
        layouts.push_back(layout);
      }
    }
  std::ranges::move(possible_layouts(length, element, {}), std::back_inserter(layouts));
  return layouts;
}

// How many blocks fit on a multiprocessor.
int resident_blocks(const RowLayout& layout, std::int64_t length, const ElementCost& element, const Target& target) {
  const std::int64_t shared = element.shared_bytes(length, layout);
  std::int64_t most =
      std::min(target.registers_per_multiprocessor / (layout.threads * element.registers(length, layout)),
               target.max_threads_per_multiprocessor / layout.threads);
  if (shared > 0) most = std::min(most, (target.shared_bytes_per_block + kReservedBytes) / (shared + kReservedBytes));
  return static_cast<int>(most);
}

// Sets the number of blocks: `at_once` per multiprocessor, reduced to give all blocks equally many rows.
RowLayout with_blocks(RowLayout layout, std::int64_t rows, int at_once, const Target& target) {
  const auto share = [](std::int64_t of, std::int64_t by) { return (of + by - 1) / by; };
  const std::int64_t iterations = share(rows, std::int64_t{layout.rows} * at_once * target.multiprocessors);
  layout.blocks = static_cast<int>(std::max<std::int64_t>(1, share(rows, layout.rows * iterations)));
  layout.blocks_at_once = at_once;
  return layout;
}

}  // namespace

bool choose_cross_row_layout(CrossRowReduction& cross_row, const Work& of_rows, const Work& of_columns,
                             const Graph& graph, const Target& target) {
  const ExprPool& pool = cross_row.rows.kernel.pool;
  const auto length = pool.extent(cross_row.rows.columns[0]).as_constant();
  if (!length || *length < kShortestRow) return false;
  const ElementCost element = element_cost(cross_row, graph);
  const std::int64_t rows = value_at_hint(pool.extent(cross_row.rows.rows[0]), pool.bounds().symbols);
  // While a block waits at a barrier, a second one works; the lines that the second one adds stay in the cache.
  constexpr double kBetter = 0.98, kAlone = 1.13;
  double least = 0;
  RowLayout best;
  const auto take = [&](const RowLayout& layout) {
    cross_row.layout = layout;
    cross_row.elements = element.of_thread(*length, layout.parts);
    cross_row.work = work_of_cross_row(cross_row, element, of_rows, of_columns, graph);
  };
  for (const RowLayout& layout : possible_copies(*length, element)) {
    const int most = resident_blocks(layout, *length, element, target);
    for (int at_once = 1; at_once <= most; ++at_once) {
      take(with_blocks(layout, rows, at_once, target));
      const bool alone = layout.reduction_group == ReductionGroup::kBlock && at_once == 1;
      const Prediction predicted = predict(cross_row.work, target);
      const double seconds = predicted.launch + (predicted.total - predicted.launch) * (alone ? kAlone : 1);
      if (least > 0 && seconds >= kBetter * least) continue;
      least = seconds;
      best = cross_row.layout;
    }
  }
  if (least > 0) take(best);
  return least > 0;
}

}  // namespace fusec
