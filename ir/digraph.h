// A directed graph of numbered vertices, as compressed sparse rows, on which orders, cycles and reachable vertices are
// found. Boost.Graph's algorithms run on it (ir/digraph_concepts.h).
//
//     0 ──▶ 2 ──▶ 1          first = {0, 1, 1, 2}, targets = {2, 1}
//
// A vertex has no list of its predecessors; reversed() gives the graph that has them.
#pragma once

#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "ir/large_vector.h"

namespace fusec {

struct Digraph {
  LargeVector<std::uint32_t> first;  // the successors of v are targets[first[v]] .. targets[first[v + 1] - 1]
  LargeVector<std::uint32_t> targets;

  std::uint32_t size() const { return first.empty() ? 0 : static_cast<std::uint32_t>(first.size() - 1); }
  std::span<const std::uint32_t> successors(std::uint32_t v) const {
    return {targets.data() + first[v], targets.data() + first[v + 1]};
  }
};

// Makes a graph of the edges that each_edge(f) passes to f(from, to). It is called twice and must pass the same edges.
// The successors of a vertex keep their order.
template <typename EachEdge>
Digraph digraph_of(std::size_t size, EachEdge each_edge) {
  Digraph graph;
  graph.first.assign(size + 2, 0);
  each_edge([&](std::uint32_t from, std::uint32_t) { ++graph.first[from + 2]; });
  std::partial_sum(graph.first.begin(), graph.first.end(), graph.first.begin());
  graph.targets.resize(graph.first.back());
  // first[v + 1] is the next free place of v's row. Once the row is full, that is the start of the next row.
  each_edge([&](std::uint32_t from, std::uint32_t to) { graph.targets[graph.first[from + 1]++] = to; });
  graph.first.pop_back();
  return graph;
}

// Turns every edge round. The successors of a vertex are in ascending order.
Digraph reversed(const Digraph& graph);

// Puts every vertex after those with an edge to it. Of several that are ready, the smallest comes first. Vertices on a
// cycle, or behind one, are left out.
std::vector<std::uint32_t> topological_order(const Digraph& graph);

// Returns a cycle: an edge leads from each vertex to the next and from the last to the first. Empty if there is none.
std::vector<std::uint32_t> find_cycle(const Digraph& graph);

// Returns what a depth-first search from the roots finds, every vertex after its successors. The graph has no cycle.
std::vector<std::uint32_t> post_order(const Digraph& graph, std::span<const std::uint32_t> roots);

// Returns the vertices on paths from `from` (excluded) up to `up_to` (included), in ascending order. If `up_to` is no
// vertex, the paths go to their ends. The graph has no cycle.
std::vector<std::uint32_t> reachable(const Digraph& graph, std::uint32_t from, std::uint32_t up_to);

}  // namespace fusec
