#include "codegen/reduction/strided_reduction_kernel.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "codegen/reduction/row_partials.h"
#include "ir/type.h"
#include "schedule/reduction/extra_outputs.h"
#include "schedule/reduction/row_form.h"
#include "schedule/reduction/strided_reduction_threads.h"
#include "schedule/target/target.h"

namespace fusec {
namespace {

constexpr int kComputingInPart = 40;  // registers per thread in addition to kept values

// Resident blocks with `registers` registers per thread. Each quarter of a multiprocessor allocates registers to warps
// in units of 256.
int blocks_of_registers(int threads, int registers) {
  constexpr int kUnit = 256, kQuarters = 4;
  const int of_warp = (std::min(255, registers) * kWarpLanes + kUnit - 1) / kUnit * kUnit;
  const int warps = kMultiprocessorRegisters / kQuarters / of_warp * kQuarters;
  return std::max(1, warps / ((threads + kWarpLanes - 1) / kWarpLanes));
}

// What is kept between loops with known trip counts: computed values if registers suffice, else loads.
RowRegisters plan_registers(const StridedReductionKernel& part, const Graph& graph) {
  const StridedReduction& plan = part.plan;
  if (plan.register_vectors == 0) return {};
  std::vector<RowLoop> loops;
  for (const ReductionLoop& loop : part.loops) loops.push_back(part.loop_over(loop.axes, part.roots_of_loop(loop)));
  if (const std::vector<ExprId> roots = roots_of(part.outputs_of(false)); !roots.empty())
    loops.push_back(part.loop_over(plan.form.columns, roots));
  if (plan.in_strips && plan.elements_per_line == 1 && !(plan.unaligned && plan.form.columns.empty()) &&
      plan.chunks == 1)
    if (RowRegisters values = plan_row_values(plan.form, graph, loops, plan.parts / plan.lanes(), plan.threads());
        !values.slots.empty())
      return values;
  if (plan.width == 1) return {};
  return plan_row_loads(plan.form, graph, loops, plan.loads, plan.register_vectors, kMaxRegisterWords);
}

// Words per lane of a reduction's accumulator.
int words_of_result(const RowForm& form, ExprId reduction) {
  const ExprNode& n = form.kernel.pool[reduction];
  const bool has_position = n.reduction == Reduction::kArgMax || n.reduction == Reduction::kArgMin;
  return (is_wide(form.kernel.pool[n.args[0]].type) ? 2 : 1) + (has_position ? 1 : 0);
}

// Words per thread of line-invariant operands.
int words_of_broadcasts(const StridedReductionKernel& part) {
  int words = 0;
  std::set<ValueId> tensors;
  for (const ExprId load : part.plan.line_invariant_loads)
    if (tensors.insert(part.plan.form.kernel.pool[load].source).second)
      words += std::clamp(part.words_of(load), 1, part.plan.width);
  return words;
}

// Registers of loops that keep nothing: loads in flight, results per lane, line-invariant operands.
int registers_of_loops(const StridedReductionKernel& part) {
  constexpr int kMoments = 3;  // words per lane
  int results = 0;             // with those that later loops read, and values computed from them
  for (const ExprId r : part.plan.form.reductions)
    results += words_of_result(part.plan.form, r) * (part.is_read_per_element(r) ? 4 : 1);
  int words = 0;
  std::set<ValueId> tensors;
  for (const ExprId load : part.plan.loads)
    if (tensors.insert(part.plan.form.kernel.pool[load].source).second) words += part.words_of(load);
  if (part.plan.one_pass) results = kMoments;
  const int stored = static_cast<int>(part.own_extra_outputs().size());
  return (results + stored) * part.plan.width + 4 * words + words_of_broadcasts(part) + kComputingInPart;
}

}  // namespace

StridedReductionKernel strided_reduction_kernel(const Graph& graph, const StridedReduction& plan, int stage) {
  StridedReductionKernel part{
      .plan = plan, .loops = reduction_loops(plan.form), .stage = stage, .outputs = plan.in_one_kernel()};
  part.outputs = part.outputs || stage + 1 == launches_of(plan);
  part.registers = plan_registers(part, graph);
  if (!part.registers.slots.empty()) part.register_vectors = plan.register_vectors;
  return part;
}

RowLoop StridedReductionKernel::loop_over(const std::vector<std::uint32_t>& axes,
                                          const std::vector<ExprId>& roots) const {
  return {.axes = axes, .width = plan.width, .roots = roots, .vectors = plan.lines()};
}

RowOutputs StridedReductionKernel::own_extra_outputs() const {
  RowOutputs found;
  if (stage > 0) return found;
  for (const KernelOutput& output : plan.form.extra_outputs) found.push_back(&output);
  return found;
}

std::vector<ExprId> StridedReductionKernel::roots_of_loop(const ReductionLoop& loop) const {
  std::vector<ExprId> roots = loop.bodies(plan.form.kernel.pool);
  if (loop.reductions == loops.front().reductions)
    std::ranges::copy(roots_of_extra_outputs(plan.form), std::back_inserter(roots));
  return roots;
}

bool StridedReductionKernel::reads_once() const {
  return plan.form.columns.empty() && (loops.size() == 1 || plan.one_pass);
}

IndexExpr StridedReductionKernel::chunks() const {
  const ExprPool& pool = plan.form.kernel.pool;
  if (plan.chunks == 1 || plan.resident_blocks || plan.lines().as_constant()) return plan.chunks;
  // Lines, or elements, per iteration.
  const IndexExpr all = plan.in_strips ? plan.lines() : plan.lines() * plan.columns();
  const int at_once = plan.in_strips ? plan.parts / plan.lanes() : plan.parts * plan.width;
  const IndexExpr groups_per_block = simplify(point_count(pool, plan.outer) * plan.strips(), pool.bounds());
  return chunks_of_launch(plan.chunks, all, std::int64_t{at_once} * vectors_of_chunk(plan), groups_per_block,
                          pool.bounds());
}

bool StridedReductionKernel::is_read_per_element(ExprId reduction) const {
  std::vector<ExprId> roots = outputs ? roots_of(outputs_of(false)) : std::vector<ExprId>{};
  for (const ReductionLoop& loop : loops)
    if (plan.in_one_kernel() || (!outputs && (plan.one_pass || loop.stage == stage)))
      std::ranges::copy(loop.bodies(plan.form.kernel.pool), std::back_inserter(roots));
  return contains(outside_reductions(plan.form, roots), reduction);
}

int StridedReductionKernel::words_of(ExprId load) const {
  return plan.width * bits(plan.form.kernel.pool[load].dtype) / 32;
}

int StridedReductionKernel::blocks_at_once() const {
  if (registers.words == 0 || plan.elements_per_line > 1)
    return blocks_of_registers(plan.threads(), registers.words + registers_of_loops(*this));
  if (plan.in_strips || plan.resident_blocks) return 1;  // in addition to the line-invariant operands
  return 2 * plan.threads() * (registers.words + kComputingInPart) > kMultiprocessorRegisters ? 1 : 0;
}

}  // namespace fusec
