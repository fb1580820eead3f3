#include "schedule/lowering/cross_row_layout.h"

#include <algorithm>
#include <set>
#include <vector>

#include "analysis/kernel/loads.h"
#include "ir/type.h"
#include "schedule/cost/cost_model.h"

namespace fusec {
namespace {

constexpr std::int64_t kShortestRow = 128;
constexpr int kComputing = 40;                // registers per thread besides kept values and two per vector element
constexpr int kMostOfLane = 32;               // elements per lane
constexpr int kMostRegistersOfThread = 232;   // registers
constexpr int kMaxRegisterWordsOfBlock = 80;  // registers for kept values, if a block takes one row

// What an element of a row costs a thread: 32-bit words for kept values and partial column results.
struct ElementCost {
  int width = 1;                 // elements per vector
  double words = 0, loaded = 0;  // `loaded`: bytes
  int most = 0;                  // most elements per thread

  // Elements, words and registers per thread if `parts` threads share a row.
  int of_thread(std::int64_t length, int parts) const {
    const std::int64_t per_iteration = std::int64_t{parts} * width;
    return static_cast<int>((length + per_iteration - 1) / per_iteration) * width;
  }
  int register_words_of(std::int64_t length, int parts) const {
    return static_cast<int>(of_thread(length, parts) * words);
  }
  int registers_of(std::int64_t length, int parts) const {
    return (register_words_of(length, parts) + kComputing + 2 * width + 7) / 8 * 8;
  }
};

ElementCost element_cost(const CrossRowReduction& cross_row, const Graph& graph) {
  const RowForm& form = cross_row.rows;
  const ExprPool& pool = form.kernel.pool;
  const auto depends = dependences(pool);
  ElementCost element{.words = static_cast<double>(cross_row.folded), .most = most_elements_of_thread(form, graph)};
  int widest = 8;
  std::set<ValueId> seen;
  for (const ExprId id : reachable(pool, roots_of(form.kernel))) {
    const ExprNode& n = pool[id];
    const bool along = std::ranges::any_of(depends[id], [&](std::uint32_t a) { return a != form.rows[0]; });
    if (n.op != ExprOp::kLoad || !along) continue;
    if (std::ranges::binary_search(depends[id], form.rows[0])) widest = std::max(widest, bits(n.dtype));
    if (!seen.insert(n.source).second) continue;
    element.words += bits(n.dtype) / 32.0;
    element.loaded += bits(n.dtype) / 8.0;
  }
  for (const KernelOutput& output : form.kernel.outputs)
    if (!is_of_rows(form, output)) widest = std::max(widest, bits(output.type.dtype));
  const int width = elements_of_vector(widest);
  if (proves_multiple_of(pool.extent(form.columns[0]), width, pool.bounds())) element.width = width;
  return element;
}

// `of_rows` and `of_columns` are the work of the two separate kernels.
Work work_of_cross_row(const CrossRowReduction& cross_row, const ElementCost& element, const Work& of_rows,
                       const Work& of_columns, const Graph& graph) {
  const ExprPool& pool = cross_row.rows.kernel.pool;
  Work work = of_rows;
  work.read = work.written = 0;
  for (const ValueId v : inputs_of(cross_row.rows.kernel))
    work.read += static_cast<double>(bytes_at_hint(graph.tensor(v), graph.symbols));
  for (std::size_t i = 0; i + cross_row.folded < cross_row.rows.kernel.outputs.size(); ++i)
    work.written += static_cast<double>(bytes_at_hint(cross_row.rows.kernel.outputs[i].type, graph.symbols));
  const double length = static_cast<double>(value_at_hint(pool.extent(cross_row.rows.columns[0]), graph.symbols));
  const double lines = 4 * length * cross_row.layout.blocks * static_cast<double>(cross_row.folded);
  work.read += lines;
  work.written += of_columns.written + lines;
  work.float32 += of_columns.float32;
  work.float64 += of_columns.float64;
  work.special += of_columns.special;
  work.sector_overfetch = 1;
  work.blocks = cross_row.layout.blocks;
  work.threads = cross_row.layout.threads;
  work.launches = 2;
  work.shared = 0;
  const double of_thread = cross_row.elements;
  work.registers = kComputing + 2.0 * element.width + of_thread * element.words;
  // Rows run one after the other: during a reduction no loads are in flight.
  work.in_flight_bytes = of_thread * element.loaded * cross_row.layout.threads / 2;
  return work;
}

// Returns the candidate layouts, preferred ones first: a warp per row if it can keep what it needs of a row, then a
// block per row.
std::vector<RowLayout> possible_layouts(std::int64_t length, const ElementCost& element, const Target& target) {
  const auto fits = [&](const RowLayout& layout) {
    return layout.threads * element.registers_of(length, layout.parts) <= target.registers_per_multiprocessor;
  };
  std::vector<RowLayout> layouts;
  if (element.of_thread(length, 32) <= std::min(element.most, kMostOfLane) &&
      element.registers_of(length, 32) <= kMostRegistersOfThread)
    for (const int warps : {8, 4, 16})
      layouts.push_back({.reduction_group = ReductionGroup::kWarp, .threads = 32 * warps, .rows = warps, .parts = 32});
  for (const int threads : {128, 256, 512, 1024})
    if (layouts.size() < 3 && element.register_words_of(length, threads) <= kMaxRegisterWordsOfBlock &&
        element.of_thread(length, threads) <= element.most && threads * element.width <= length)
      layouts.push_back({.reduction_group = ReductionGroup::kBlock, .threads = threads, .rows = 1, .parts = threads});
  std::erase_if(layouts, [&](const RowLayout& layout) { return !fits(layout); });
  return layouts;
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
  constexpr double kBetter = 0.98;
  double least = 0;
  RowLayout best;
  const auto take = [&](const RowLayout& layout) {
    cross_row.layout = layout;
    cross_row.elements = element.of_thread(*length, layout.parts);
    cross_row.work = work_of_cross_row(cross_row, element, of_rows, of_columns, graph);
  };
  for (const RowLayout& layout : possible_layouts(*length, element, target)) {
    const int registers = layout.threads * element.registers_of(*length, layout.parts);
    const int most = std::min(target.registers_per_multiprocessor / registers,
                              target.max_threads_per_multiprocessor / layout.threads);
    for (int at_once = 1; at_once <= most; ++at_once) {
      take(with_blocks(layout, rows, at_once, target));
      const double seconds = predict(cross_row.work, target).total;
      if (least > 0 && seconds >= kBetter * least) continue;
      least = seconds;
      best = cross_row.layout;
    }
  }
  if (least > 0) take(best);
  return least > 0;
}

}  // namespace fusec
