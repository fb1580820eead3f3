// Orders, cycles and reachability on small graphs, and against Boost.Graph's own algorithms on random ones.
#include "ir/digraph.h"

#include <algorithm>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/graph_concepts.hpp>
#include <boost/graph/strong_components.hpp>
#include <random>

#include "doctest/doctest.h"
#include "ir/digraph_concepts.h"

namespace fusec::test {
namespace {

BOOST_CONCEPT_ASSERT((boost::VertexListGraphConcept<Digraph>));
BOOST_CONCEPT_ASSERT((boost::IncidenceGraphConcept<Digraph>));
BOOST_CONCEPT_ASSERT((boost::AdjacencyGraphConcept<Digraph>));

using Vertices = std::vector<std::uint32_t>;

Digraph graph_of(std::size_t size, const std::vector<DigraphEdge>& edges) {
  return digraph_of(size, [&](auto edge) {
    for (const auto& [from, to] : edges) edge(from, to);
  });
}

Vertices successors(const Digraph& graph, std::uint32_t v) {
  const auto found = graph.successors(v);
  return {found.begin(), found.end()};
}

}  // namespace

TEST_CASE("digraph: successors keep the order of the edges; reversed sorts them") {
  const Digraph graph = graph_of(4, {{2, 3}, {0, 3}, {0, 1}, {0, 3}});
  CHECK(graph.size() == 4);
  CHECK(successors(graph, 0) == Vertices{3, 1, 3});
  CHECK(successors(graph, 1).empty());
  CHECK(successors(reversed(graph), 3) == Vertices{0, 0, 2});
  CHECK(graph_of(0, {}).size() == 0);
  CHECK(topological_order({}).empty());
}

TEST_CASE("digraph: orders") {
  //  3 ──▶ 0 ──▶ 2 ◀── 1
  const Digraph graph = graph_of(4, {{3, 0}, {0, 2}, {1, 2}});
  CHECK(topological_order(graph) == Vertices{1, 3, 0, 2});
  CHECK(post_order(graph, Vertices{0, 3, 0}) == Vertices{2, 0, 3});
  CHECK(find_cycle(graph).empty());
  // What stands behind a cycle has no place either.
  const Digraph with_cycle = graph_of(5, {{3, 0}, {0, 2}, {2, 0}, {2, 1}, {4, 4}});
  CHECK(topological_order(with_cycle) == Vertices{3});
  CHECK(find_cycle(with_cycle) == Vertices{0, 2});
  CHECK(find_cycle(graph_of(2, {{0, 1}, {1, 1}})) == Vertices{1});
}

TEST_CASE("digraph: what lies on paths up to a vertex") {
  const Digraph graph = graph_of(6, {{0, 1}, {0, 2}, {1, 3}, {2, 3}, {3, 4}, {5, 3}});
  CHECK(reachable(graph, 0, 3) == Vertices{1, 2, 3});
  CHECK(reachable(graph, 0, 6) == Vertices{1, 2, 3, 4});
  CHECK(reachable(graph, 4, 6).empty());
}

TEST_CASE("digraph: a path as long as the graph needs no deep recursion") {
  constexpr std::uint32_t kSize = 1'000'000;
  const Digraph graph = digraph_of(kSize, [](auto edge) {
    for (std::uint32_t v = 0; v < kSize; ++v) edge(v, (v + 1) % kSize);
  });
  CHECK(find_cycle(graph).size() == kSize);
}

TEST_CASE("digraph: agrees with Boost.Graph") {
  std::mt19937 random(7);
  for (int i = 0; i < 1000; ++i) {
    const std::uint32_t size = 1 + random() % 12;
    std::vector<DigraphEdge> edges;
    for (std::size_t e = random() % (size + 3); e > 0; --e) edges.emplace_back(random() % size, random() % size);
    const Digraph graph = graph_of(size, edges);
    CAPTURE(i);
    Vertices component(size);
    const auto ids = boost::typed_identity_property_map<std::uint32_t>();
    const auto components = boost::strong_components(graph, component.data(), boost::vertex_index_map(ids));
    const bool is_ordered = topological_order(graph).size() == size;
    const bool has_loop = std::ranges::any_of(edges, [](const DigraphEdge& e) { return e.first == e.second; });
    CHECK(is_ordered == (components == size && !has_loop));
    const Vertices cycle = find_cycle(graph);
    CHECK(cycle.empty() == is_ordered);
    for (std::size_t c = 0; c < cycle.size(); ++c)
      CHECK(std::ranges::count(graph.successors(cycle[c]), cycle[(c + 1) % cycle.size()]) > 0);

    std::vector<boost::default_color_type> colors(size);
    boost::queue<std::uint32_t> queue;
    boost::breadth_first_visit(graph, 0, queue, boost::default_bfs_visitor(), colors.data());
    const Vertices found = reachable(graph, 0, size);
    for (std::uint32_t v = 1; v < size; ++v)
      CHECK(std::ranges::binary_search(found, v) == (colors[v] != boost::white_color));
  }
}

}  // namespace fusec::test
