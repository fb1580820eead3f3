#include "schedule/cost/cost_model.h"

#include <algorithm>
#include <cmath>

#include "ir/type.h"

namespace fusec {
namespace {

constexpr double kMostRegisters = 255;      // per thread
constexpr double kCacheOverMemoryRate = 2;  // rate of repeated sector reads over the rate of memory

struct Occupancy {
  double blocks = 0;  // resident on the device at a time
  double waves = 1;   // blocks of the busiest multiprocessor over the average
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

// Returns the seconds of the slowest unit with all multiprocessors busy.
double unit_seconds(const Work& work, const Target& target) {
  return std::max({work.tensor / target.float16_rate, work.float32 / target.float32_rate,
                   work.float64 / target.float64_rate, work.special / target.special_rate});
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
  const double moved = (work.read + work.written) * std::max(1.0, work.sector_overfetch / kCacheOverMemoryRate);
  const double bytes = moved + 2 * 4 * spilled * work.blocks * work.threads;
  const double bandwidth = std::min(target.bandwidth, running.blocks * work.in_flight_bytes / target.latency_seconds);
  Prediction p;
  p.launch = work.launches * target.launch_seconds;
  p.memory = bytes / bandwidth;
  p.compute = running.waves * unit_seconds(work, target);
  if (work.separate_compute > 0) {
    p.memory = std::min(p.memory, work.separate_memory);
    p.compute = std::min(p.compute, work.separate_compute);
  }
  p.total = p.launch + std::max(p.memory, p.compute);
  p.read = work.read;
  p.written = work.written;
  p.launches = static_cast<std::uint32_t>(work.launches);
  return p;
}

Work horizontally_fused(const Work& a, const Work& b, const Target& target) {
  const Prediction of_a = predict(a, target), of_b = predict(b, target);
  const double blocks = a.blocks + b.blocks;
  const auto mean = [&](double of_one, double of_other) { return (of_one * a.blocks + of_other * b.blocks) / blocks; };
  return {.read = a.read + b.read,
          .written = a.written + b.written,
          .sector_overfetch = ((a.read + a.written) * a.sector_overfetch + (b.read + b.written) * b.sector_overfetch) /
                              std::max(1.0, a.read + a.written + b.read + b.written),
          .tensor = a.tensor + b.tensor,
          .float32 = a.float32 + b.float32,
          .float64 = a.float64 + b.float64,
          .special = a.special + b.special,
          .blocks = blocks,
          .threads = mean(a.threads, b.threads),
          .in_flight_bytes = mean(a.in_flight_bytes, b.in_flight_bytes),
          .launches = std::max(a.launches, b.launches),
          .registers = std::max(a.registers, b.registers),
          .shared = std::max(a.shared, b.shared),
          .separate_memory = of_a.memory + of_b.memory,
          .separate_compute = of_a.compute + of_b.compute};
}

bool stores_nothing(const Graph& graph, const Kernel& kernel) {
  return std::ranges::all_of(kernel.outputs,
                             [&](const KernelOutput& o) { return bytes_at_hint(o.type, graph.symbols) == 0; });
}

}  // namespace fusec
