// How many arguments a group's kernel would have: the distinct values it reads from outside, and those it defines that
// are graph outputs or read outside. Kept by the partitioner where arguments are limited.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/fusion_graph.h"

namespace fusec {

// Which values the vertices read and write: what a limit on the arguments of a kernel counts. Values are the vertices
// that define them, and from graph.size() on the leaves (inputs and constants).
struct ArgumentTable {
  std::vector<std::uint32_t> first;  // value ids that v reads: reads[first[v]] .. reads[first[v + 1]]
  std::vector<std::uint32_t> reads;
  std::vector<Vertex> item_of;          // the node whose result an item vertex is, else kNoVertex
  std::vector<std::uint8_t> has_items;  // 1: the vertex has several results, its items are the values
};

ArgumentTable argument_table(const Graph& graph, const FusionGraph& fusion);

class ArgumentCount {
 public:
  ArgumentCount(const ForwardGraph& graph, const ArgumentTable& table, std::uint32_t limit);

  // Would the groups of `source`, of all in `between`, and of `target` (a root) fit together? `up` is the union-find
  // forest of the groups.
  bool fits(Vertex source, std::span<const Vertex> between, Vertex target, std::span<const Vertex> up);
  void merge(Vertex root, Vertex target);

  // Exactly, for one group as it stands.
  std::uint32_t count(std::span<const Vertex> members);

 private:
  void gather(Vertex root);

  const ForwardGraph& graph_;
  const ArgumentTable& table_;
  const std::uint32_t limit_;
  std::vector<std::uint32_t> at_most_;  // of each root
  std::vector<Vertex> next_member_;     // the members of a group, as a ring
  std::vector<Vertex> members_;
  std::vector<std::uint64_t> member_stamp_, value_stamp_;
  std::uint64_t now_ = 0;
};

}  // namespace fusec
