#include "schedule/reduction/register_resident_strip.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "ir/type.h"
#include "schedule/reduction/blocks_per_row.h"
#include "schedule/reduction/row_values.h"
#include "schedule/reduction/strided_reduction_threads.h"
#include "schedule/target/target.h"

namespace fusec {
namespace {

constexpr int kMostStripThreads = 512, kWarpsOfBlock = 4;
constexpr int kMaxIterationsOfWarp = 64, kMaxIterationsOfBlock = 16;
constexpr int kMeeting = 60;              // instructions for warps to combine a reduction
constexpr int kInstructionsOfAccess = 4;  // instructions of a load or store with its address

// The size of the reduction, with symbols at their hints.
struct StripWork {
  std::int64_t groups = 1, line = 1, length = 1, longest = 1;
  int reductions = 1, accesses = 2, widest_bits = 32;
  int code = 1, values = 1;  // instructions if values are kept between loops; number of those values
  int code_recomputed = 1;   // instructions if nothing is kept
  int line_broadcasts = 0;   // tensors with one element per line
  bool are_of_sectors = false;
};

struct StripCost {
  double work = 0;  // instructions of warps, times the overfetch
  double time = 0;  // work, times the shortage of warps or blocks for the multiprocessors
};

struct RegisterStrips {
  StridedReduction plan;
  StripCost cost = {};
};

StripWork lines_of(const StridedReductionLayout& lines, const Graph& graph) {
  const StridedReduction& plan = lines.plan;
  const ExprPool& pool = plan.form.kernel.pool;
  const Symbols& symbols = pool.bounds().symbols;
  std::map<ValueId, int> tensors;
  for (const ExprId load : plan.loads) ++tensors[pool[load].source];
  const auto depends = dependences(pool);
  std::set<ValueId> line_broadcasts;
  for (const ExprId id : reachable(pool, roots_of(plan.form.kernel)))
    if (plan.line_broadcasts && pool[id].op == ExprOp::kLoad && !tensors.contains(pool[id].source) &&
        !std::ranges::binary_search(depends[id], plan.inner))
      line_broadcasts.insert(pool[id].source);
  return {
      .groups = std::max<std::int64_t>(1, value_at_hint(point_count(pool, plan.outer), symbols)),
      .line = value_at_hint(plan.line_stride, symbols),
      .length = value_at_hint(plan.lines(), symbols),
      .longest = range_of(plan.lines(), pool.bounds()).max,
      .reductions = static_cast<int>(plan.form.reductions.size()),
      .accesses = static_cast<int>(tensors.size() + outputs_of(plan.form, false).size()),
      .widest_bits = lines.widest_bits,
      .code = code_of_row(plan.form, graph),
      .values = values_between_loops(plan.form, graph),
      .code_recomputed = code_of_row(plan.form, graph, true),
      .line_broadcasts = static_cast<int>(line_broadcasts.size()),
      .are_of_sectors = proves_multiple_of(plan.line_stride, 8 * kSectorBytes / lines.narrowest_bits, pool.bounds())};
}

// Overfetch with `lanes` lanes per line: sectors shared with the neighbouring strips, and sectors of tensors with one
// element per line.
double sector_overfetch(const StripWork& lines, int lanes, int width) {
  const double bytes = lines.widest_bits / 8.0, of_line = bytes * lanes * width;
  const double shared = lines.are_of_sectors || lanes * width >= lines.line ? 0 : kSectorBytes - bytes * width;
  const double of_lines = std::max(1.0, 32 / lanes * bytes / kSectorBytes) * kSectorBytes / lines.accesses;
  return 1 + shared / of_line + lines.line_broadcasts * of_lines / (32 * bytes * width);
}

// Instructions with which a thread combines its columns with the threads that have other lines of them.
double joining(const StripWork& lines, int width, int at_once, int group_threads) {
  if (at_once == 1) return 0;
  if (group_threads == kWarpLanes)
    return 3.0 * lines.reductions * width * std::countr_zero(static_cast<unsigned>(at_once));
  return lines.reductions * (5.0 * width + group_threads / 16.0 + kMeeting);
}

StripCost cost_of(double warps, int warps_of_block, double of_thread, double sector_overfetch, const Target& target) {
  constexpr int kWarpsWanted = 4;
  const double lacking =
      std::max(kWarpsWanted * target.multiprocessors / warps, target.multiprocessors * warps_of_block / warps);
  const double work = warps * of_thread * sector_overfetch;
  return {.work = work, .time = work * std::max(1.0, lacking)};
}

// Cost of one thread per single column element (ReductionGroup::kColumn).
StripCost cost_of_single_elements(const StripWork& lines, const Target& target) {
  const double warps_of_part = static_cast<double>(lines.groups * lines.line) / 32;
  const bool few = warps_of_part < 2 * target.multiprocessors;
  const auto eighth = static_cast<unsigned>(std::max<std::int64_t>(1, lines.length / 8));
  const int threads = std::min(static_cast<int>(std::bit_ceil(eighth)), few ? 32 : 8);
  const double elements = static_cast<double>(lines.length + threads - 1) / threads;
  const double joining = threads > 1 ? kMeeting * lines.reductions : 0;
  return cost_of(warps_of_part * threads, threads,
                 elements * (lines.code + kInstructionsOfAccess * lines.accesses) + joining,
                 sector_overfetch(lines, 32, 1), target);
}

// A strip of `lanes` vectors per line for a group of `group_threads` threads; nothing if the threads cannot keep it.
std::optional<RegisterStrips> shape(const StridedReductionLayout& from, const StripWork& lines, int lanes,
                                    int group_threads, const Target& target) {
  RegisterStrips found{from.plan};
  StridedReduction& plan = found.plan;
  const int at_once = group_threads / lanes;
  // Without strips, a block also takes single elements.
  if (at_once > lines.length || (plan.width == 1 && group_threads > kWarpLanes)) return std::nullopt;
  plan.rows = lanes * plan.width;
  plan.group_threads = plan.parts = group_threads;
  const auto iterations = static_cast<int>((lines.longest + at_once - 1) / at_once);
  const int most = group_threads == kWarpLanes ? kMaxIterationsOfWarp : kMaxIterationsOfBlock;
  const bool keeps_values = iterations * plan.width * lines.values <= kMaxRegisterWords;
  const int code = (keeps_values ? lines.code : lines.code_recomputed) * plan.width;
  if (iterations > most || !(keeps_values || iterations * words_of_vectors(plan) <= kMaxRegisterWords) ||
      iterations * code > kMaxUnrolledInstructions)
    return std::nullopt;
  if (group_threads > kWarpLanes && (group_threads < plan.rows || !has_room_for_results(plan, group_threads)))
    return std::nullopt;
  plan.register_vectors = iterations;
  const std::int64_t strips = lines.groups * ((lines.line + plan.rows - 1) / plan.rows);
  plan.groups_per_block = group_threads > kWarpLanes ? 1 : kWarpsOfBlock;
  while (plan.groups_per_block > 1 && strips < plan.groups_per_block * target.multiprocessors)
    plan.groups_per_block /= 2;
  const double per_iteration = code + kInstructionsOfAccess * lines.accesses;
  found.cost = cost_of(static_cast<double>(strips * (group_threads / 32)), plan.threads() / 32,
                       iterations * per_iteration + joining(lines, plan.width, at_once, group_threads),
                       sector_overfetch(lines, lanes, plan.width), target);
  return found;
}

// True if the part of a line wastes little of its sectors.
bool is_wide_enough(const StripWork& lines, int columns) {
  constexpr int kLine = 64;
  return columns >= lines.line || columns * lines.widest_bits / 8 >= (lines.are_of_sectors ? kSectorBytes : kLine);
}

}  // namespace

std::optional<StridedReduction> register_resident_strip(const RowForm& form, const Graph& graph, const Target& target) {
  constexpr double kWorthNarrower = 0.97;
  std::optional<StridedReductionLayout> found = strided_reduction_layout(form, graph, true);
  if (!found) return std::nullopt;
  const StripWork lines = lines_of(*found, graph);
  if (lines.longest > kOnChipOfColumns || lines.line <= kMaxStripRows) return std::nullopt;
  std::optional<RegisterStrips> best;
  for (; found->plan.width * found->narrowest_bits >= 32; found->plan.width /= 2)
    for (int lanes = 32; lanes > 1; lanes /= 2) {
      if (!is_wide_enough(lines, lanes * found->plan.width)) break;
      for (int group_threads = kWarpLanes; group_threads <= kMostStripThreads; group_threads *= 2)
        if (const std::optional<RegisterStrips> now = shape(*found, lines, lanes, group_threads, target);
            now && (!best || now->cost.time < kWorthNarrower * best->cost.time))
          best = now;
    }
  const StripCost single = cost_of_single_elements(lines, target);
  if (!best || best->cost.time > single.time || best->cost.work > single.work) return std::nullopt;
  return best->plan;
}

}  // namespace fusec
