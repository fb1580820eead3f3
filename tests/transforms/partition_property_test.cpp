// What holds for every partition and plan, on at least ten thousand random graphs.
#include <algorithm>
#include <thread>

#include "doctest/doctest.h"
#include "support/plain_partition.h"
#include "support/random_graph.h"
#include "transforms/argument_count.h"
#include "transforms/fuse.h"
#include "transforms/partition.h"
#include "transforms/partition_report.h"
#include "transforms/plan_file.h"
#include "transforms/verify_plan.h"

namespace fusec::test {
namespace {

constexpr std::uint64_t kFirstSeed = 20261100;

FuseOptions random_options(Random& random) {
  FuseOptions options{.strategy = Strategy::kTvm};
  constexpr std::uint32_t kLimits[] = {1, 2, 3, 5, 8, 13, 30, 256, 256, 256};
  options.max_fused_ops = kLimits[random.below(10)];
  if (random.chance(30)) options.max_args = 2 + random.below(10);
  return options;
}

// One plan, written out in full.
std::string bytes_of(const AnnotatedGraph& g, const FusionPlan& plan) {
  return write_plan(g.graph, plan) + partition_report(g.graph, plan, {});
}

void check_plan(const AnnotatedGraph& g, const FuseOptions& options) {
  const FusionPlan plan = fuse(g.graph, g.kinds, options);
  verify_plan(g.graph, g.kinds, plan);
  std::size_t nodes = 0;
  for (const FusionGroup& group : plan.groups) nodes += group.nodes.size();
  REQUIRE(nodes == g.graph.nodes.size());
  const std::string bytes = bytes_of(g, plan);
  REQUIRE(bytes == bytes_of(g, fuse(g.graph, g.kinds, options)));
  const FusionPlan again = read_plan(write_plan(g.graph, plan), "plan.json", g.graph, g.kinds, options);
  REQUIRE(bytes == bytes_of(g, again));
}

}  // namespace

TEST_CASE("partition: equal to the plain definition on random graphs") {
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + 10000; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    const AnnotatedGraph g = random_graph(random, {.max_nodes = 60});
    const FusionGraph fusion = build_fusion_graph(g.graph, g.kinds);
    const std::uint32_t limit = random_options(random).max_fused_ops;
    const Partition ours = partition(fusion.forward, PostDominators(fusion.forward), {.max_fused_ops = limit});
    REQUIRE(ours.root == PlainPartition(fusion.forward, limit).roots());
  }
}

TEST_CASE("partition: equal to the plain definition where counts pass the limit") {
  for (const std::uint32_t width : {3u, 10u, 40u}) {
    for (const bool join : {true, false}) {
      CAPTURE(width);
      const AnnotatedGraph g = layered_graph(1500, width, join, width);
      const FusionGraph fusion = build_fusion_graph(g.graph, std::vector(g.graph.nodes.size(), OpPattern::kElemwise));
      const Partition ours = partition(fusion.forward, PostDominators(fusion.forward), {});
      CHECK(ours.root == PlainPartition(fusion.forward, 256).roots());
    }
  }
}

TEST_CASE("plans: legal, deterministic, written and read back, on random graphs") {
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + 10000; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    const AnnotatedGraph g = random_graph(random, {.max_nodes = 40, .fusion_disabled = true});
    check_plan(g, random_options(random));
  }
}

TEST_CASE("count_to_parent: never more than there are, exact below the cap") {
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + 300; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    const AnnotatedGraph g = random_graph(random, {.max_nodes = 80});
    const ForwardGraph graph = build_fusion_graph(g.graph, g.kinds).forward;
    const PostDominators post(graph);
    const LargeVector<std::uint32_t> exact = count_to_parent(graph, post, 1000);
    const LargeVector<std::uint32_t> capped = count_to_parent(graph, post, 6);
    for (Vertex v = 0; v < graph.size(); ++v) {
      if (post.parent(v) != kNoVertex) REQUIRE(capped[v] == std::min(exact[v], 6u));
    }
  }
}

TEST_CASE("plans: the same bytes from eight threads at once") {
  const AnnotatedGraph g = layered_graph(3000, 10, true, kFirstSeed);
  const std::string alone = bytes_of(g, fuse(g.graph, g.kinds, {}));
  std::vector<std::string> results(8);
  std::vector<std::thread> threads;
  for (std::string& result : results) {
    threads.emplace_back([&] { result = bytes_of(g, fuse(g.graph, g.kinds, {})); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& result : results) CHECK(result == alone);
}

TEST_SUITE("full") {
  TEST_CASE("plans: legal and deterministic on graphs of a million nodes") {
    check_plan(layered_graph(1000000, 10, true, kFirstSeed), {.strategy = Strategy::kTvm});
    check_plan(layered_graph(1000000, 10, false, kFirstSeed), {.strategy = Strategy::kTvm});
  }
  TEST_CASE("partition: equal to the plain definition on a hundred thousand random graphs") {
    for (std::uint64_t seed = 1; seed <= 100000; ++seed) {
      CAPTURE(seed);
      Random random(seed);
      const AnnotatedGraph g = random_graph(random, {.max_nodes = 60});
      const FusionGraph fusion = build_fusion_graph(g.graph, g.kinds);
      const std::uint32_t limit = random_options(random).max_fused_ops;
      const Partition ours = partition(fusion.forward, PostDominators(fusion.forward), {.max_fused_ops = limit});
      REQUIRE(ours.root == PlainPartition(fusion.forward, limit).roots());
    }
  }
}

}  // namespace fusec::test
