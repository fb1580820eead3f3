// time_partition MODEL [REPEATS [PLAN]]: reads a model, annotates and partitions it (--strategy=tvm) REPEATS times, and
// prints one JSON line: the median seconds, and the peak memory with reading included. PLAN: where to write the plan.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <vector>

#include "analysis/annotate.h"
#include "ir/read.h"
#include "transforms/fuse.h"
#include "transforms/plan_file.h"

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int run(int argc, char** argv) {
  const int repeats = argc > 2 ? std::max(1, std::atoi(argv[2])) : 3;
  const auto begin = std::chrono::steady_clock::now();
  const fusec::Graph graph = fusec::read_model(argv[1]);
  const double reading = seconds_since(begin);
  std::vector<double> annotating, partitioning, both;
  fusec::FusionPlan plan;
  for (int i = 0; i < repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const std::vector<fusec::OpPattern> kinds = fusec::annotate(graph, fusec::PatternSource::kTvm);
    annotating.push_back(seconds_since(start));
    const auto middle = std::chrono::steady_clock::now();
    plan = fusec::fuse(graph, kinds, {.strategy = fusec::Strategy::kTvm});
    partitioning.push_back(seconds_since(middle));
    both.push_back(seconds_since(start));
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf(
      "{\"nodes\": %zu, \"groups\": %zu, \"read\": %.6f, \"annotate\": %.6f, \"partition\": %.6f, "
      "\"seconds\": %.6f, \"peak_mib\": %ld}\n",
      graph.nodes.size(), plan.groups.size(), reading, median(annotating), median(partitioning), median(both),
      usage.ru_maxrss / 1024);
  if (argc > 3) std::ofstream(argv[3], std::ios::binary) << fusec::write_plan(graph, plan);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  fusec::keep_freed_memory();  // as fusec does
  if (argc < 2) {
    std::fprintf(stderr, "usage: time_partition MODEL [REPEATS [PLAN]]\n");
    return 2;
  }
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
