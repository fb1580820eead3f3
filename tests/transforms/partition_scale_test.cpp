// Annotation and partition take the same time for a node of a large graph as for one of a small graph. The bounds are
// wide (bench/partition_scale.py measures): what is quadratic misses them twentyfold, a busy machine does not.
#include <doctest/doctest.h>

#include <algorithm>
#include <ctime>
#include <limits>

#include "analysis/annotate.h"
#include "support/random_graph.h"
#include "transforms/fuse.h"

namespace fusec::test {
namespace {

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double least_seconds_a_node(const Graph& graph, int repeats) {
  double least = std::numeric_limits<double>::max();
  for (int i = 0; i < repeats; ++i) {
    const double start = cpu_seconds();
    const FusionPlan plan = fuse(graph, annotate(graph, PatternSource::kTvm), {.strategy = Strategy::kTvm});
    least = std::min(least, cpu_seconds() - start);
    REQUIRE(plan.group_of.size() == graph.nodes.size());
  }
  return least / static_cast<double>(graph.nodes.size());
}

void check_growth(std::uint32_t width, bool join) {
  CAPTURE(width);
  CAPTURE(join);
  const double small = least_seconds_a_node(layered_graph(10000, width, join, 1).graph, 9);
  const double large = least_seconds_a_node(layered_graph(200000, width, join, 1).graph, 4);
  CHECK(large < 2.0 * small);
#ifdef NDEBUG
  CHECK(large < 1 / 0.3e6);  // 0.3 million nodes a second
#endif
}

}  // namespace

TEST_CASE("partition: the time a node does not grow with the graph") {
  check_growth(1, true);    // a chain
  check_growth(10, true);   // branches that meet only at the end
  check_growth(10, false);  // many outputs
}

}  // namespace fusec::test
