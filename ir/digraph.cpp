#include "ir/digraph.h"

#include <algorithm>
#include <boost/graph/depth_first_search.hpp>
#include <boost/graph/topological_sort.hpp>
#include <functional>
#include <iterator>
#include <queue>

#include "ir/budget.h"
#include "ir/digraph_concepts.h"

// Boost's depth-first searches keep a stack of their own: they do not recurse unless BOOST_RECURSIVE_DFS is defined.
namespace fusec {
namespace {

using Colors = std::vector<boost::default_color_type>;  // by vertex; its pointer is Boost's map of colors

// Keeps the path from the root to the current vertex. The first edge back into the path closes the cycle.
struct CycleVisitor : boost::default_dfs_visitor {
  std::vector<std::uint32_t>& path;
  std::vector<std::uint32_t>& cycle;

  void discover_vertex(std::uint32_t v, const Digraph&) const {
    count_step();
    path.push_back(v);
  }
  void finish_vertex(std::uint32_t, const Digraph&) const { path.pop_back(); }
  void back_edge(DigraphEdge edge, const Digraph&) const {
    if (cycle.empty()) cycle.assign(std::ranges::find(path, edge.second), path.end());
  }
};

}  // namespace

Digraph reversed(const Digraph& graph) {
  return digraph_of(graph.size(), [&](auto edge) {
    for (std::uint32_t v = 0; v < graph.size(); ++v) {
      count_step();
      for (const std::uint32_t to : graph.successors(v)) edge(to, v);
    }
  });
}

// Kahn's algorithm. Boost's topological_sort does not put the smallest vertex first.
std::vector<std::uint32_t> topological_order(const Digraph& graph) {
  std::vector<std::uint32_t> waiting(graph.size(), 0);  // by vertex: edges from vertices that have no place yet
  for (const std::uint32_t to : graph.targets) ++waiting[to];
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
  for (std::uint32_t v = 0; v < graph.size(); ++v)
    if (waiting[v] == 0) ready.push(v);
  std::vector<std::uint32_t> order;
  order.reserve(graph.size());
  while (!ready.empty()) {
    count_step();
    const std::uint32_t v = ready.top();
    ready.pop();
    order.push_back(v);
    for (const std::uint32_t to : graph.successors(v))
      if (--waiting[to] == 0) ready.push(to);
  }
  return order;
}

std::vector<std::uint32_t> find_cycle(const Digraph& graph) {
  std::vector<std::uint32_t> path, cycle;
  Colors colors(graph.size());
  boost::depth_first_search(graph, CycleVisitor{{}, path, cycle}, colors.data());
  return cycle;
}

std::vector<std::uint32_t> post_order(const Digraph& graph, std::span<const std::uint32_t> roots) {
  std::vector<std::uint32_t> order;
  order.reserve(graph.size());
  Colors colors(graph.size());
  for (const std::uint32_t root : roots)
    if (colors[root] == boost::white_color)
      boost::depth_first_visit(graph, root, boost::topo_sort_visitor(std::back_inserter(order)), colors.data());
  return order;
}

std::vector<std::uint32_t> reachable(const Digraph& graph, std::uint32_t from, std::uint32_t up_to) {
  Colors colors(graph.size());
  const auto is_end = [up_to](std::uint32_t v, const Digraph&) { return v == up_to; };
  boost::depth_first_visit(graph, from, boost::default_dfs_visitor(), colors.data(), is_end);
  std::vector<std::uint32_t> found;
  for (std::uint32_t v = 0; v < graph.size(); ++v)
    if (v != from && colors[v] != boost::white_color) found.push_back(v);
  return found;
}

}  // namespace fusec
