// Annotation and partition up to the finished plan, on one core: nodes a second at 10k, 100k and 1M nodes.
#include <benchmark/benchmark.h>

#include "analysis/annotate.h"
#include "partition_families.h"
#include "transforms/fuse.h"

namespace fusec::bench {
namespace {

void annotate_and_partition(benchmark::State& state, const Family& family) {
  const Graph graph = family.make(static_cast<std::uint32_t>(state.range(0)));
  std::size_t groups = 0;
  for (auto _ : state) {
    const std::vector<OpPattern> kinds = annotate(graph, PatternSource::kTvm);
    const FusionPlan plan = fuse(graph, kinds, {.strategy = Strategy::kTvm});
    groups = plan.groups.size();
    benchmark::DoNotOptimize(groups);
  }
  const double nodes = static_cast<double>(graph.nodes.size());
  state.counters["groups"] = static_cast<double>(groups);
  state.counters["nodes"] = nodes;
  state.counters["nodes_per_second"] =
      benchmark::Counter(nodes * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

void partition_only(benchmark::State& state, const Family& family) {
  const Graph graph = family.make(static_cast<std::uint32_t>(state.range(0)));
  const std::vector<OpPattern> kinds = annotate(graph, PatternSource::kTvm);
  for (auto _ : state) {
    const FusionPlan plan = fuse(graph, kinds, {.strategy = Strategy::kTvm});
    benchmark::DoNotOptimize(plan.groups.data());
  }
  const double nodes = static_cast<double>(graph.nodes.size());
  state.counters["nodes"] = nodes;
  state.counters["nodes_per_second"] =
      benchmark::Counter(nodes * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

}  // namespace
}  // namespace fusec::bench

int main(int argc, char** argv) {
  using namespace fusec::bench;
  fusec::keep_freed_memory();  // as fusec does
  for (const Family& family : families()) {
    const std::string name(family.name);
    benchmark::RegisterBenchmark(("annotate_and_partition/" + name).c_str(), annotate_and_partition, family)
        ->Arg(10000)
        ->Arg(100000)
        ->Arg(1000000)
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(("partition/" + name).c_str(), partition_only, family)
        ->Arg(10000)
        ->Arg(1000000)
        ->Unit(benchmark::kMillisecond);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
