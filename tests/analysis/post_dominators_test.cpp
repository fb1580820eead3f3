// The post-dominator tree against its definition on small graphs, and against Boost.Graph on large ones.
#include "analysis/post_dominators.h"

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dominator_tree.hpp>

#include "analysis/fusion_graph.h"
#include "doctest/doctest.h"
#include "support/random_graph.h"

namespace fusec::test {
namespace {

constexpr std::uint64_t kFirstSeed = 20260400;

bool is_end(const ForwardGraph& graph, Vertex v) {
  return graph.external[v] != 0 || graph.consumers(v).empty();
}

// By definition: p post-dominates v if every way from v to an end goes through p.
bool post_dominates(const ForwardGraph& graph, Vertex p, Vertex v) {
  if (is_end(graph, v)) return false;
  return std::ranges::none_of(reachable(graph.edges, v, p), [&](Vertex u) { return u != p && is_end(graph, u); });
}

void check_by_definition(const ForwardGraph& graph, std::uint64_t seed) {
  const PostDominators post(graph);
  for (Vertex v = 0; v < graph.size(); ++v) {
    Vertex nearest = kNoVertex;
    for (Vertex p = v + 1; p < graph.size() && nearest == kNoVertex; ++p) {
      if (post_dominates(graph, p, v)) nearest = p;
    }
    REQUIRE_MESSAGE(post.parent(v) == nearest, "seed " << seed << ", vertex " << v);
    if (nearest == kNoVertex) continue;
    OpPattern greatest = graph.pattern[nearest];
    for (const Vertex u : reachable(graph.edges, v, nearest)) greatest = kind_of_path(greatest, graph.pattern[u]);
    REQUIRE_MESSAGE(post.pattern_to_parent(v) == greatest, "seed " << seed << ", vertex " << v);
    REQUIRE(post.depth(v) == post.depth(nearest) + 1);
  }
}

// The nearest common ancestor by climbing one step at a time.
Vertex climb_together(const PostDominators& post, Vertex a, Vertex b) {
  while (a != b) {
    Vertex& deeper = post.depth(a) >= post.depth(b) ? a : b;
    deeper = post.parent(deeper);
    if (deeper == kNoVertex) return kNoVertex;
  }
  return a;
}

void check_against_boost(const ForwardGraph& graph) {
  using Reversed = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS>;
  const Vertex exit = graph.size();
  std::vector<std::pair<Vertex, Vertex>> edges;
  for (Vertex v = 0; v < graph.size(); ++v) {
    if (is_end(graph, v)) edges.emplace_back(exit, v);
    for (const Vertex c : graph.consumers(v)) edges.emplace_back(c, v);
  }
  const Reversed reversed(edges.begin(), edges.end(), graph.size() + 1);
  using Index = Reversed::vertices_size_type;
  std::vector<Index> parent(graph.size() + 1, graph.size() + 1);
  const auto parents = boost::make_iterator_property_map(parent.begin(), boost::get(boost::vertex_index, reversed));
  boost::lengauer_tarjan_dominator_tree(reversed, Index{exit}, parents);
  const PostDominators post(graph);
  std::size_t different = 0;
  for (Vertex v = 0; v < graph.size(); ++v) {
    const Vertex ours = post.parent(v) == kNoVertex ? exit : post.parent(v);
    different += parent[v] != ours;
  }
  CHECK(different == 0);
}

ForwardGraph forward_of(const AnnotatedGraph& g) {
  return build_fusion_graph(g.graph, g.kinds).forward;
}

// value i is used again at the end by the node that mirrors it, as in a U-Net
AnnotatedGraph long_skips(std::uint32_t nodes) {
  AnnotatedGraph g;
  std::vector<ValueId> values{g.graph.add_input("x", TensorType{DType::kFloat32, {4}})};
  for (std::uint32_t i = 0; i < nodes; ++i) {
    std::vector<ValueId> operands{values.back()};
    if (i > nodes / 2) operands.push_back(values[nodes - i]);
    values.push_back(add_custom(g, i % 3 == 0 ? OpPattern::kOutEwiseFusable : OpPattern::kElemwise, operands));
  }
  g.graph.outputs = {values.back()};
  return g;
}

void check_large(std::uint32_t nodes) {
  check_against_boost(forward_of(layered_graph(nodes, 10, true, kFirstSeed)));
  check_against_boost(forward_of(layered_graph(nodes, 10, false, kFirstSeed + 1)));
  check_against_boost(forward_of(layered_graph(nodes, 300, true, kFirstSeed + 2)));
  check_against_boost(forward_of(long_skips(nodes)));
  Random random(kFirstSeed);
  check_against_boost(forward_of(random_graph(random, {.max_nodes = nodes})));
}

}  // namespace

TEST_CASE("post-dominators: by definition, on small random graphs") {
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + 10000; ++seed) {
    Random random(seed);
    check_by_definition(forward_of(random_graph(random, {.max_nodes = 20})), seed);
  }
}

TEST_CASE("post-dominators: the nearest common one is that of a plain climb") {
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + 200; ++seed) {
    Random random(seed);
    const ForwardGraph graph = forward_of(random_graph(random, {.max_nodes = 60}));
    const PostDominators post(graph);
    for (Vertex a = 0; a < graph.size(); ++a) {
      for (Vertex b = a; b < graph.size(); ++b) {
        REQUIRE_MESSAGE(post.common(a, b) == climb_together(post, a, b), "seed " << seed);
      }
    }
  }
}

TEST_CASE("post-dominators: Boost.Graph's on graphs of ten thousand nodes") {
  check_large(10000);
}

TEST_SUITE("full") {
  TEST_CASE("post-dominators: Boost.Graph's on graphs of half a million nodes") {
    check_large(500000);
  }
}

}  // namespace fusec::test
