#include "codegen/schedules/interleaved_part.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

#include "analysis/outputs_beside.h"
#include "analysis/row_form.h"
#include "analysis/target.h"
#include "codegen/schedules/row_partials.h"
#include "ir/type.h"

namespace fusec {
namespace {

constexpr int kComputingInPart = 40;  // registers of a thread, beside what it keeps

// Blocks that run at once where each thread has so many registers: these are given to warps in units of 256, by each
// quarter of a multiprocessor.
int blocks_of_registers(int threads, int registers) {
  constexpr int kUnit = 256, kQuarters = 4;
  const int of_warp = (std::min(255, registers) * kWarpLanes + kUnit - 1) / kUnit * kUnit;
  const int warps = kMultiprocessorRegisters / kQuarters / of_warp * kQuarters;
  return std::max(1, warps / ((threads + kWarpLanes - 1) / kWarpLanes));
}

void plan_kept(InterleavedPart& part, const Graph& graph) {
  const InterleavedRows& way = part.way;
  const ExprPool& pool = way.form.kernel.pool;
  if (way.kept_turns == 0) return;
  std::map<int, std::vector<ExprId>> bodies;
  for (const ReductionLoop& loop : part.loops)
    std::ranges::copy(part.roots_of_loop(loop), std::back_inserter(bodies[loop.stage]));
  bodies[part.loops.back().stage + 1] = roots_of_outputs(part.outputs_of(false));
  std::map<ValueId, int> uses;
  for (const auto& [stage, roots] : bodies) {
    std::set<ValueId> here;
    for (const ExprId load : part.loads_of(roots)) here.insert(pool[load].source);
    for (const ValueId value : here) ++uses[value];
  }
  for (const auto& [value, count] : uses) {
    const int more = way.kept_turns * way.width * bits(graph.tensor(value).dtype) / 32;
    if (count < 2 || part.kept_words + more > kMostKeptWords) continue;
    part.kept_words += more;
    part.kept.insert(value);
    part.kept_turns = way.kept_turns;
  }
}

// False where they are too many.
bool plan_values(InterleavedPart& part, const Graph& graph) {
  const InterleavedRows& way = part.way;
  if (way.kept_turns == 0 || !way.in_strips || way.breadth > 1 || (way.shifted && way.form.columns.empty()) ||
      way.chunks > 1)
    return false;
  std::vector<RowLoop> loops;
  for (const ReductionLoop& loop : part.loops) loops.push_back(part.loop_over(loop.axes, part.roots_of_loop(loop)));
  if (const std::vector<ExprId> roots = roots_of_outputs(part.outputs_of(false)); !roots.empty())
    loops.push_back(part.loop_over(way.form.columns, roots));
  std::optional<RowRegisters> plan = plan_row_values(way.form, graph, loops, way.parts / way.lanes(), way.threads());
  if (!plan || plan->slots.empty()) return false;
  part.values = *std::move(plan);
  part.kept_turns = way.kept_turns;
  part.kept_words = part.values.words;
  return true;
}

// What a place has of a reduction.
int words_of_result(const RowForm& form, ExprId reduction) {
  const ExprNode& n = form.kernel.pool[reduction];
  const bool has_position = n.reduction == Reduction::kArgMax || n.reduction == Reduction::kArgMin;
  return (is_wide(form.kernel.pool[n.args[0]].type) ? 2 : 1) + (has_position ? 1 : 0);
}

// Of what is the same for all lines, those of a thread's places.
int words_beside(const InterleavedPart& part) {
  int words = 0;
  std::set<ValueId> tensors;
  for (const ExprId load : part.way.beside)
    if (tensors.insert(part.way.form.kernel.pool[load].source).second)
      words += std::clamp(part.words_of(load), 1, part.way.width);
  return words;
}

// Of loops that keep nothing: turns on the way, results at each place of a vector, what stands beside all lines.
int registers_of_loops(const InterleavedPart& part) {
  constexpr int kMoments = 3;  // results of a place
  std::map<int, int> places;   // of each stage's reductions
  int asked_for = 0, most = 0;
  for (const ReductionLoop& loop : part.loops) {
    for (const ExprId r : loop.reductions) {
      const int result = words_of_result(part.way.form, r);
      most = std::max(most, places[loop.stage] += result);
      asked_for += part.is_asked_for(r) ? result : 0;
    }
  }
  int words = 0;
  std::set<ValueId> tensors;
  for (const ExprId load : part.way.loads)
    if (tensors.insert(part.way.form.kernel.pool[load].source).second) words += part.words_of(load);
  // What is the same for a place is made of its results once.
  if (part.outputs && !part.outputs_of(false).empty()) asked_for += asked_for + 1;
  const int results = part.way.one_pass ? kMoments : most + asked_for;
  const int stored = static_cast<int>(part.outputs_beside().size());
  return (results + stored) * part.way.width + 4 * words + words_beside(part) + kComputingInPart;
}

}  // namespace

InterleavedPart interleaved_part(const Graph& graph, const InterleavedRows& way, int stage) {
  InterleavedPart part{.way = way, .loops = reduction_loops(way.form), .stage = stage, .outputs = way.in_one_kernel()};
  part.outputs = part.outputs || stage + 1 == launches_of(way);
  if (!plan_values(part, graph)) plan_kept(part, graph);
  return part;
}

std::vector<ExprId> roots_of_outputs(const InterleavedPart::Outputs& outputs) {
  std::vector<ExprId> roots;
  for (const KernelOutput* output : outputs) roots.push_back(output->expr);
  return roots;
}

RowLoop InterleavedPart::loop_over(const std::vector<std::uint32_t>& axes, const std::vector<ExprId>& roots) const {
  return {.axes = axes, .width = way.width, .roots = roots, .vectors = way.lines()};
}

InterleavedPart::Outputs InterleavedPart::outputs_of(bool row) const {
  Outputs found;
  for (const KernelOutput& output : way.form.kernel.outputs)
    if (is_of_rows(way.form, output) == row) found.push_back(&output);
  return found;
}

InterleavedPart::Outputs InterleavedPart::outputs_beside() const {
  Outputs found;
  if (stage > 0) return found;
  for (const KernelOutput& output : way.form.beside) found.push_back(&output);
  return found;
}

std::vector<ExprId> InterleavedPart::roots_of_loop(const ReductionLoop& loop) const {
  std::vector<ExprId> roots = loop.bodies(way.form.kernel.pool);
  if (loop.reductions == loops.front().reductions) std::ranges::copy(roots_beside(way.form), std::back_inserter(roots));
  return roots;
}

bool InterleavedPart::reads_once() const {
  return way.form.columns.empty() && (loops.size() == 1 || (way.one_pass && kept_turns == 0));
}

IndexExpr InterleavedPart::chunks() const {
  const ExprPool& pool = way.form.kernel.pool;
  if (way.chunks == 1 || way.cohort || way.lines().as_constant()) return way.chunks;
  // Of a turn: so many lines, or elements.
  const IndexExpr all = way.in_strips ? way.lines() : way.lines() * way.columns();
  const int at_once = way.in_strips ? way.parts / way.lanes() : way.parts * way.width;
  const IndexExpr teams = simplify(point_count(pool, way.outer) * way.strips(), pool.bounds());
  return chunks_of_launch(way.chunks, all, std::int64_t{at_once} * turns_of_chunk(way), teams, pool.bounds());
}

bool InterleavedPart::is_asked_for(ExprId reduction) const {
  std::vector<ExprId> roots = outputs ? roots_of_outputs(outputs_of(false)) : std::vector<ExprId>{};
  for (const ReductionLoop& loop : loops)
    if (way.in_one_kernel() || (!outputs && (way.one_pass || loop.stage == stage)))
      std::ranges::copy(loop.bodies(way.form.kernel.pool), std::back_inserter(roots));
  return contains(outside_reductions(way.form, roots), reduction);
}

std::vector<ExprId> InterleavedPart::loads_of(const std::vector<ExprId>& roots) const {
  std::vector<ExprId> loads;
  for (const ExprId id : outside_reductions(way.form, roots))
    if (contains(way.loads, id)) loads.push_back(id);
  std::ranges::sort(loads);
  return loads;
}

int InterleavedPart::words_of(ExprId load) const {
  return way.width * bits(way.form.kernel.pool[load].dtype) / 32;
}

bool InterleavedPart::forgets() const {
  const int elements = kept_turns * way.width * static_cast<int>(kept.size());
  return kept_words + elements + kComputingInPart > kMultiprocessorRegisters / way.threads();
}

int InterleavedPart::blocks_at_once() const {
  if (kept_words == 0 || way.breadth > 1)
    return blocks_of_registers(way.threads(), kept_words + registers_of_loops(*this));
  if (way.in_strips || way.cohort) return 1;  // beside what is the same for a place
  return 2 * way.threads() * (kept_words + kComputingInPart) > kMultiprocessorRegisters ? 1 : 0;
}

}  // namespace fusec
