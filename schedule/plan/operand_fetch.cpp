#include "schedule/plan/operand_fetch.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "analysis/kernel/loads.h"
#include "schedule/cost/cost_model.h"
#include "schedule/plan/kernel_planner.h"

namespace fusec {
namespace {

constexpr double kSectors = 8;     // a strided load of one element moves a sector of eight
constexpr double kOneAtATime = 3;  // a product that loads single elements takes three times its roofline

// Bytes of the tensors that are read across their innermost dimension: neither the last of the output's axes nor the
// last of a sum, nor of a product's rows and columns, runs along it.
double bytes_read_across(const Graph& graph, const Kernel& kernel, const std::optional<Contraction>& contraction) {
  const ExprPool& pool = kernel.pool;
  std::set<std::uint32_t> along;
  const auto add_last = [&](const std::vector<std::uint32_t>& axes) {
    for (std::size_t i = axes.size(); i-- > 0;)
      if (!pool.extent(axes[i]).is(1)) {
        along.insert(axes[i]);
        return;
      }
  };
  const std::vector<ExprId> nodes = reachable(pool, roots_of(kernel));
  for (const KernelOutput& output : kernel.outputs) add_last(output.axes);
  for (const ExprId id : nodes)
    if (pool[id].op == ExprOp::kReduce) add_last(pool[id].axes);
  if (contraction) add_last(contraction->rows);
  std::set<ValueId> across;
  for (const ExprId id : nodes) {
    const ExprNode& n = pool[id];
    if (n.op != ExprOp::kLoad) continue;
    const IndexExpr position = position_of(graph, pool, id);
    bool runs = false, stands = true;
    for (const std::uint32_t axis : along) {
      const Variable v{Variable::Kind::kAxis, axis};
      runs = runs || coefficient_of(position, v) == 1;
      stands = stands && !mentions(position, v);
    }
    if (!runs && !stands) across.insert(n.source);
  }
  double bytes = 0;
  for (const ValueId v : across) bytes += static_cast<double>(bytes_at_hint(graph.tensor(v), graph.symbols));
  return bytes;
}

// Of a product that fetches its factors one by one, at least: what an element costs in instructions and a step in
// waiting, by the tiles that a multiprocessor makes one after the other.
double seconds_of_steps(const ExprPool& pool, const Contraction& contraction, const Target& target) {
  constexpr double kTile = 64, kStep = 32, kAnElement = 40, kInstructionsACycle = 128;
  const double tiles = std::ceil(points_at_hint(pool, contraction.rows) / kTile) *
                       std::ceil(points_at_hint(pool, contraction.columns) / kTile) *
                       points_at_hint(pool, contraction.batch);
  double cycles = 0;
  for (const ContractionLoop& loop : contraction.loops) {
    const double lines = kTile * static_cast<double>(loop.left.size() + loop.right.size());
    cycles +=
        std::ceil(points_at_hint(pool, loop.k) / kStep) *
        (std::ceil(tiles / target.multiprocessors) * lines * kStep * kAnElement / kInstructionsACycle + kCacheLatency);
  }
  return target.launch_seconds + cycles / kCyclesPerSecond;
}

// Of warps or of warpgroups; nothing where no tiles are copied.
std::optional<double> cycles_of(const KernelPlanner& planner) {
  if (const WarpgroupGemms* wide = planner.best_warpgroups()) return wide->cycles;
  if (planner.kind_of_tiles() != KernelKind::kContraction) return planner.cycles_of_tiles();
  // What is predicted of gathered tiles is too little where columns are few; layouts that warpgroups take are better.
  constexpr double kMore = 2;
  return planner.joined() ? std::optional(kMore * planner.joined()->cycles) : std::nullopt;
}

}  // namespace

double seconds_of_form(const KernelPlanner& planner) {
  const FormOfKernel& form = planner.form();
  const Target& target = planner.target();
  if (form.form == KernelForm::kPointwise || form.form == KernelForm::kAttention) return 0;  // heads are rows
  if (planner.groups()) return target.launch_seconds + planner.groups()->cycles / kCyclesPerSecond;
  if (form.contraction) {
    if (planner.skinny()) return 0;
    if (const auto cycles = cycles_of(planner)) return target.launch_seconds + *cycles / kCyclesPerSecond;
  }
  const double roof = predict(planner.work(), target).total;
  const double across =
      kSectors * bytes_read_across(planner.graph(), planner.shaped(), form.contraction) / target.bandwidth;
  if (form.contraction)
    return std::max(kOneAtATime * roof, seconds_of_steps(planner.shaped().pool, *form.contraction, target)) + across;
  const auto loops = loop_instructions(planner);
  return roof + (loops ? 2 * *loops / target.float32_rate : 0) + across;
}

}  // namespace fusec
