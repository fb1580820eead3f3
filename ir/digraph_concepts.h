// Makes Digraph a graph of Boost.Graph: a VertexListGraph, an IncidenceGraph and an AdjacencyGraph. An edge is the pair
// of its ends. For .cpp files alone, since Boost.Graph's headers compile slowly.
#pragma once

#include <boost/graph/graph_traits.hpp>
#include <boost/iterator/counting_iterator.hpp>
#include <boost/iterator/transform_iterator.hpp>
#include <cstdint>
#include <utility>

#include "ir/digraph.h"

namespace fusec {

using DigraphEdge = std::pair<std::uint32_t, std::uint32_t>;

struct EdgeFrom {
  std::uint32_t from = 0;
  DigraphEdge operator()(std::uint32_t to) const { return {from, to}; }
};

}  // namespace fusec

template <>
struct boost::graph_traits<fusec::Digraph> {
  struct traversal_category : vertex_list_graph_tag, incidence_graph_tag, adjacency_graph_tag {};
  using directed_category = directed_tag;
  using edge_parallel_category = allow_parallel_edge_tag;
  using vertex_descriptor = std::uint32_t;
  using edge_descriptor = fusec::DigraphEdge;
  using vertex_iterator = counting_iterator<std::uint32_t>;
  using adjacency_iterator = const std::uint32_t*;
  using out_edge_iterator = transform_iterator<fusec::EdgeFrom, const std::uint32_t*>;
  using vertices_size_type = std::uint32_t;
  using edges_size_type = std::uint32_t;
  using degree_size_type = std::uint32_t;
  static vertex_descriptor null_vertex() { return 0xffffffff; }
};

namespace fusec {

using DigraphTraits = boost::graph_traits<Digraph>;

inline std::uint32_t source(DigraphEdge edge, const Digraph&) {
  return edge.first;
}
inline std::uint32_t target(DigraphEdge edge, const Digraph&) {
  return edge.second;
}
inline std::uint32_t num_vertices(const Digraph& graph) {
  return graph.size();
}
inline std::pair<DigraphTraits::vertex_iterator, DigraphTraits::vertex_iterator> vertices(const Digraph& graph) {
  return {DigraphTraits::vertex_iterator(0), DigraphTraits::vertex_iterator(graph.size())};
}
inline std::uint32_t out_degree(std::uint32_t v, const Digraph& graph) {
  return static_cast<std::uint32_t>(graph.successors(v).size());
}
inline std::pair<const std::uint32_t*, const std::uint32_t*> adjacent_vertices(std::uint32_t v, const Digraph& graph) {
  const auto found = graph.successors(v);
  return {found.data(), found.data() + found.size()};
}
inline std::pair<DigraphTraits::out_edge_iterator, DigraphTraits::out_edge_iterator> out_edges(std::uint32_t v,
                                                                                               const Digraph& graph) {
  const auto [begin, end] = adjacent_vertices(v, graph);
  return {{begin, EdgeFrom{v}}, {end, EdgeFrom{v}}};
}

}  // namespace fusec
