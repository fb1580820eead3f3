// time_strategies FAMILY|MODEL NODES [REPEATS [FILE]]: the time from the graph to the finished plan under `tvm` and
// under `full`, for a family of bench/partition_families.h, or a model that is repeated as layers until it has that
// many nodes. Prints one JSON line: median seconds of CPU of each strategy and of each pass of `full`. Built-in
// patterns are read before the clock starts: they take the same time whatever the model. FILE: where to write the graph
// as a model.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "ir/large_vector.h"
#include "ir/read.h"
#include "ir/write.h"
#include "partition_families.h"
#include "passes.h"
#include "pipeline_options.h"
#include "repeat_model.h"

namespace {

using namespace fusec;

// Of one core: what else runs on the machine is left out.
double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

Graph make_graph(const std::string& what, std::uint32_t nodes) {
  for (const bench::Family& family : bench::families())
    if (family.name == what) return family.make(nodes);
  return bench::repeat_model(read_model(what), nodes);
}

struct Times {
  std::vector<double> total;
  std::map<std::string, std::vector<double>> passes;
  std::size_t groups = 0;
};

void measure(const Graph& graph, PipelineOptions options, Times& times) {
  Graph copy = graph;
  double begin = 0;
  options.before_pass = [&](const Pass&, const Graph&) { begin = cpu_seconds(); };
  options.after_pass = [&](const Pass& pass, const Graph&) {
    times.passes[std::string(pass.name)].push_back(cpu_seconds() - begin);
  };
  Pipeline pipeline(std::move(options));
  const double start = cpu_seconds();
  const PlannedModel planned = pipeline.plan(std::move(copy));
  times.total.push_back(cpu_seconds() - start);
  times.groups = planned.plan.groups.size();
}

int run(int argc, char** argv) {
  const Graph graph = make_graph(argv[1], static_cast<std::uint32_t>(std::atoi(argv[2])));
  const int repeats = argc > 3 ? std::max(1, std::atoi(argv[3])) : 3;
  const PipelineOptions as_tvm = pipeline_options({.strategy = "tvm"}),
                        as_full = pipeline_options({.strategy = "full"});
  if (argc > 4) std::ofstream(argv[4], std::ios::binary) << model_text(graph, true);
  Times tvm, full;
  for (int i = 0; i < repeats; ++i) {
    measure(graph, as_tvm, tvm);
    measure(graph, as_full, full);
  }
  std::printf(
      "{\"family\": \"%s\", \"nodes\": %zu, \"tvm\": %.6f, \"full\": %.6f, \"ratio\": %.2f, \"tvm_groups\": %zu, "
      "\"full_groups\": %zu, \"passes\": {",
      argv[1], graph.nodes.size(), median(tvm.total), median(full.total), median(full.total) / median(tvm.total),
      tvm.groups, full.groups);
  const char* comma = "";
  for (const auto& [pass, seconds] : full.passes) {
    std::printf("%s\"%s\": %.6f", comma, pass.c_str(), median(seconds));
    comma = ", ";
  }
  std::printf("}}\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  fusec::keep_freed_memory();  // as fusec does
  if (argc < 3) {
    std::fprintf(stderr, "usage: time_strategies FAMILY|MODEL NODES [REPEATS [FILE]]\n");
    return 2;
  }
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
