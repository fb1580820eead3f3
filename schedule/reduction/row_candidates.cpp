#include "schedule/reduction/row_candidates.h"

#include <algorithm>
#include <iterator>

#include "schedule/kernel_forms.h"
#include "schedule/reduction/lane_sectors.h"
#include "schedule/reduction/row_values.h"

namespace fusec {
namespace {

// Up to this length single threads are faster, if no column needs the result and rows are not contiguous.
constexpr int kSmallWindow = 48;
constexpr std::size_t kMaxMultiRow = 6;

// True if neighbouring rows read overlapping elements.
bool are_windows(const RowForm& form) {
  const ExprPool& pool = form.kernel.pool;
  for (const ExprId id : reachable(pool, form.reductions)) {
    if (pool[id].op != ExprOp::kLoad) continue;
    for (const IndexExpr& e : pool[id].indices)
      for (const ExprId r : form.reductions)
        for (const std::uint32_t tap : pool[r].axes)
          for (const std::uint32_t row : form.rows) {
            const auto step = coefficient_of(e, {Variable::Kind::kAxis, row});
            const auto dilation = coefficient_of(e, {Variable::Kind::kAxis, tap});
            const auto taps = pool.extent(tap).as_constant();
            if (step && dilation && taps && *step > 0 && *step <= *dilation * (*taps - 1)) return true;
          }
  }
  return false;
}

// True for windows that are short, or read in an order that suits single threads.
bool is_for_single_threads(const RowForm& form, const Direction& direction) {
  if (!form.columns.empty()) return false;
  const ExprPool& pool = form.kernel.pool;
  std::int64_t longest = 0;
  for (const ExprId r : form.reductions)
    longest = std::max(longest, value_at_hint(point_count(pool, pool[r].axes), pool.bounds().symbols));
  // Rows with several reduction stages are kept in the registers of several threads instead.
  if (stage_count(form) > 1 && !form.rows.empty() && direction.along_reduction + direction.along_rows > 0) return false;
  if (longest <= kSmallWindow) return !direction.whole_rows;
  if (longest > 8 * kSmallWindow) return false;
  return (direction.along_rows == 0 && direction.along_reduction == 0) || are_windows(form);
}

// Keeps the layouts in which the lanes of one warp have a whole segment. kColumn has none.
void keep_whole_segments(std::vector<RowLayout>& layouts) {
  std::vector<RowLayout> whole;
  for (RowLayout layout : layouts) {
    if (layout.reduction_group == ReductionGroup::kColumn) continue;
    layout.chunks = 1;
    if (layout.reduction_group == ReductionGroup::kWarp) {
      layout.parts = 32;
      layout.rows = layout.threads / 32;
    }
    if (std::ranges::find(whole, layout) == whole.end()) whole.push_back(layout);
  }
  layouts = std::move(whole);
}

// The plans count rows by their place in memory, so nested axes of rows are merged first.
std::vector<MultiRowBlock> find_multi_row_blocks(RowForm& form, const Graph& graph, const Target& target) {
  RowForm merged = with_rows_merged(form, graph);
  std::vector<MultiRowBlock> found = multi_row_block(merged, graph, target);
  if (found.size() > kMaxMultiRow) found.resize(kMaxMultiRow);
  if (!found.empty()) form = std::move(merged);
  return found;
}

double asked_for_by(const RowLayout& layout, const RowCandidates& candidates, const Graph& graph) {
  const bool side_by_side = layout.reduction_group == ReductionGroup::kColumn;
  return sector_overfetch_of_lanes(candidates.form, graph,
                                   side_by_side ? std::optional(candidates.direction.contiguous_row) : std::nullopt);
}

}  // namespace

std::optional<RowCandidates> find_row_candidates(const RowForm& form, const Graph& graph, const Target& target) {
  RowCandidates candidates{.form = form, .direction = direction_of(form, graph), .plans = {}};
  const bool segmented = !form.segments.empty();
  const auto add = [&](auto plans) { std::ranges::move(plans, std::back_inserter(candidates.plans)); };
  // Two operands that repeat over different rows look like a matrix product; with columns it is none.
  const bool product = candidates.direction.product;
  if (product && form.columns.empty()) return std::nullopt;
  if (!segmented) add(find_multi_row_blocks(candidates.form, graph, target));
  if (!product && !segmented && candidates.plans.empty())
    if (auto plan = strided_reduction(candidates.form, graph, target)) candidates.plans.emplace_back(*std::move(plan));
  if (!product && candidates.plans.empty()) add(transposed_row_reduction(candidates.form, graph, target));
  if (!is_for_single_threads(candidates.form, candidates.direction)) {
    std::vector<RowLayout> layouts = row_layouts(candidates.form, candidates.direction, graph, target);
    if (segmented) keep_whole_segments(layouts);
    add(std::move(layouts));
  }
  if (candidates.plans.empty()) return std::nullopt;
  return candidates;
}

std::vector<std::string> names_of(const RowCandidates& candidates) {
  std::vector<std::string> names;
  for (const RowCandidate& plan : candidates.plans)
    names.push_back(std::visit([](const auto& of) { return name_of(of); }, plan));
  return names;
}

RowLaunch row_launch(const RowCandidates& candidates, const Graph& graph) {
  const RowCandidate& best = candidates.plans.front();
  if (const auto* plan = std::get_if<TransposedRowReduction>(&best))
    return {.sector_overfetch = plan->sector_overfetch,
            .blocks = static_cast<double>(blocks_of(*plan)),
            .threads = static_cast<double>(plan->threads),
            .shared_bytes = 4.0 * plan->words};
  if (std::holds_alternative<MultiRowBlock>(best)) return {};
  RowLaunch launch;
  if (const auto* plan = std::get_if<StridedReduction>(&best)) {
    (plan->resident_blocks ? launch.blocks_per_row : launch.chunks) = plan->chunks;
    launch.launches = launches_of(*plan);
    return launch;
  }
  const auto& layout = std::get<RowLayout>(best);
  launch = {.blocks_per_row = layout.blocks_sharing_row(),
            .chunks = layout.chunks,
            .launches = launches_of(candidates.form, layout),
            .on_chip = layout.on_chip,
            .sector_overfetch = asked_for_by(layout, candidates, graph)};
  return launch;
}

int unrolled_elements(const RowCandidates& candidates, const Graph& graph) {
  constexpr int kMaxRegisterElements = 64, kMostOfColumn = 16;
  const RowCandidate& best = candidates.plans.front();
  if (const auto* plan = std::get_if<TransposedRowReduction>(&best)) return plan->iterations() * plan->width;
  if (const auto* plan = std::get_if<MultiRowBlock>(&best)) return plan->iterations;
  int width = 4;
  if (const auto* plan = std::get_if<StridedReduction>(&best)) {
    width = plan->width;
    if (plan->register_vectors > 0) return width * plan->register_vectors;
  } else {
    const auto& layout = std::get<RowLayout>(best);
    const ExprPool& pool = candidates.form.kernel.pool;
    std::int64_t longest = range_of(point_count(pool, candidates.form.columns), pool.bounds()).max;
    for (const ExprId r : candidates.form.reductions)
      longest = std::max(longest, range_of(point_count(pool, pool[r].axes), pool.bounds()).max);
    const std::int64_t elements = (longest + layout.parts - 1) / layout.parts;
    if (layout.reduction_group == ReductionGroup::kColumn)
      return static_cast<int>(std::min<std::int64_t>(elements, kMostOfColumn));
    if (layout.chunks == 1 && elements <= kMaxRegisterElements) return static_cast<int>(elements);
  }
  return width * unroll_factor(width * code_of_row(candidates.form, graph));
}

}  // namespace fusec
