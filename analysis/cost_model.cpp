#include "analysis/cost_model.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "analysis/column_folds.h"
#include "analysis/formula_flops.h"

namespace fusec {
namespace {

constexpr double kMostRegisters = 255;      // of a thread
constexpr double kCacheOverMemoryRate = 2;  // of sectors that are asked for again and again, over memory's

struct Occupancy {
  double blocks = 0;  // that run at a time
  double waves = 1;   // of blocks on the busiest multiprocessor, over those on the average one
};

Occupancy occupancy(const Work& work, const Target& target) {
  const double registers = std::min(work.registers, kMostRegisters);
  const double threads =
      std::min<double>(target.max_threads_per_multiprocessor, target.registers_per_multiprocessor / registers);
  double resident = threads / work.threads;
  if (work.shared > 0) resident = std::min(resident, target.shared_bytes_per_block / work.shared);
  const double at_a_time = std::max(1.0, std::floor(resident));
  const double share = work.blocks / target.multiprocessors;
  return {std::min(work.blocks, target.multiprocessors * at_a_time), std::ceil(share) / share};
}

// Of the unit that decides, all multiprocessors busy.
double unit_seconds(const Work& work, const Target& target) {
  return std::max({work.tensor / target.float16_rate, work.float32 / target.float32_rate,
                   work.float64 / target.float64_rate, work.special / target.special_rate});
}

bool is_empty(const Graph& graph, const Kernel& kernel) {
  return std::ranges::all_of(kernel.outputs,
                             [&](const KernelOutput& o) { return bytes_at_hint(o.type, graph.symbols) == 0; });
}

// Nothing for what launches nothing.
std::optional<Work> work_of(const Graph& graph, const LoweredUnit& unit, const FormOfKernel* form,
                            const Target& target) {
  if (unit.kind == LoweredUnit::Kind::kAlias) return std::nullopt;
  if (unit.kind == LoweredUnit::Kind::kSpecial) return work_of_special(graph, graph.nodes[unit.node]);
  if (is_empty(graph, unit.kernel)) return std::nullopt;
  return work_of(graph, unit.kernel, *form, target);
}

}  // namespace

std::string_view name(Roof roof) {
  return roof == Roof::kLaunch ? "launch" : roof == Roof::kMemory ? "memory" : "compute";
}

Roof Prediction::roof() const {
  const double most = std::max({launch, memory, compute});
  return memory == most ? Roof::kMemory : compute == most ? Roof::kCompute : Roof::kLaunch;
}

Prediction& Prediction::operator+=(const Prediction& other) {
  launch += other.launch;
  memory += other.memory;
  compute += other.compute;
  total += other.total;
  flops += other.flops;
  read += other.read;
  written += other.written;
  launches += other.launches;
  return *this;
}

Prediction predict(const Work& work, const Target& target) {
  const Occupancy running = occupancy(work, target);
  const double spilled = std::max(0.0, work.registers - kMostRegisters);
  const double moved = (work.read + work.written) * std::max(1.0, work.asked_for / kCacheOverMemoryRate);
  const double bytes = moved + 2 * 4 * spilled * work.blocks * work.threads;
  const double bandwidth = std::min(target.bandwidth, running.blocks * work.on_the_way / target.latency_seconds);
  Prediction p;
  p.launch = work.launches * target.launch_seconds;
  p.memory = bytes / bandwidth;
  p.compute = running.waves * unit_seconds(work, target);
  if (work.compute_apart > 0) {
    p.memory = std::min(p.memory, work.memory_apart);
    p.compute = std::min(p.compute, work.compute_apart);
  }
  p.total = p.launch + std::max(p.memory, p.compute);
  p.read = work.read;
  p.written = work.written;
  p.launches = static_cast<std::uint32_t>(work.launches);
  return p;
}

Work side_by_side(const Work& a, const Work& b, const Target& target) {
  const Prediction of_a = predict(a, target), of_b = predict(b, target);
  const double blocks = a.blocks + b.blocks;
  const auto mean = [&](double of_one, double of_other) { return (of_one * a.blocks + of_other * b.blocks) / blocks; };
  return {.read = a.read + b.read,
          .written = a.written + b.written,
          .asked_for = ((a.read + a.written) * a.asked_for + (b.read + b.written) * b.asked_for) /
                       std::max(1.0, a.read + a.written + b.read + b.written),
          .tensor = a.tensor + b.tensor,
          .float32 = a.float32 + b.float32,
          .float64 = a.float64 + b.float64,
          .special = a.special + b.special,
          .blocks = blocks,
          .threads = mean(a.threads, b.threads),
          .on_the_way = mean(a.on_the_way, b.on_the_way),
          .launches = std::max(a.launches, b.launches),
          .registers = std::max(a.registers, b.registers),
          .shared = std::max(a.shared, b.shared),
          .memory_apart = of_a.memory + of_b.memory,
          .compute_apart = of_a.compute + of_b.compute};
}

std::optional<Work> work_of_launch(const Graph& graph, const std::vector<LoweredUnit>& units, const FormsOfUnits& forms,
                                   const std::vector<std::uint32_t>& launch, const std::vector<FoldedUnits>& folded,
                                   const Target& target) {
  const Target of_launch = target_of_launch(graph, units, forms, launch, target);
  std::optional<Work> work;
  for (const std::uint32_t u : launch) {
    const auto folds_it = [&](const FoldedUnits& with) { return with.folds_unit(u); };
    if (launch.size() > 1 && std::ranges::any_of(folded, folds_it)) continue;
    const auto with = std::ranges::find(folded, u, &FoldedUnits::rows);
    if (const std::optional<Work> part = with != folded.end() && launch.size() > 1
                                             ? with->folds.work
                                             : work_of(graph, units[u], forms[u].get(), of_launch))
      work = work ? side_by_side(*work, *part, target) : *part;
  }
  return work;
}

Prediction predict(const Graph& graph, const std::vector<LoweredUnit>& units, const FormsOfUnits& forms,
                   const std::vector<std::vector<std::uint32_t>>& launches, const Target& target) {
  std::vector<FoldedUnits> folded;
  if (std::ranges::any_of(launches, [](const auto& launch) { return launch.size() > 1; }))
    folded = folded_units(units, forms, graph, target);
  Prediction sum;
  for (const std::vector<std::uint32_t>& launch : launches)
    if (const auto work = work_of_launch(graph, units, forms, launch, folded, target)) sum += predict(*work, target);
  return sum;
}

Prediction predict(const Graph& graph, const std::vector<NodeId>& nodes, const std::vector<ValueId>& outputs,
                   bool together, const Target& target, const Numerics& numerics, FormMemory* known) {
  std::vector<LoweredUnit> units = lower_group(graph, nodes, outputs, false, known);
  set_numerics(units, numerics);
  const FormsOfUnits forms = forms_of(units);
  std::vector<std::vector<std::uint32_t>> launches;
  if (together) launches = launches_of(units, forms, graph, target);
  for (std::uint32_t u = 0; !together && u < units.size(); ++u) launches.push_back({u});
  Prediction sum = predict(graph, units, forms, launches, target);
  for (const LoweredUnit& unit : units)
    if (unit.kind == LoweredUnit::Kind::kKernel) sum.flops += formula_flops(unit.kernel);
  return sum;
}

double predicted_us(const Graph& graph, const Kernel& kernel, const FormOfKernel& form, const Target& target) {
  return is_empty(graph, kernel) ? 0 : predict(work_of(graph, kernel, form, target), target).total * 1e6;
}

}  // namespace fusec
