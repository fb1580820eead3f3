// Counts the arguments of a group's kernel: the distinct values that it reads from outside, and the values that it
// defines and that are graph outputs or are read outside. The partitioner uses it if PartitionOptions::max_args is set.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/fusion_graph.h"

namespace fusec {

// The values that each vertex reads and writes. A value's id is the vertex that defines it; ids from graph.size() on
// are leaves (inputs and constants).
struct ArgumentTable {
  std::vector<std::uint32_t> first;  // value ids that v reads: reads[first[v]] .. reads[first[v + 1]]
  std::vector<std::uint32_t> reads;
  std::vector<Vertex> item_of;          // by vertex: for an item, the vertex whose result it is; else kNoVertex
  std::vector<std::uint8_t> has_items;  // 1: the vertex has several results, and its item vertices are the values
};

ArgumentTable argument_table(const Graph& graph, const FusionGraph& fusion);

class ArgumentCount {
 public:
  ArgumentCount(const ForwardGraph& graph, const ArgumentTable& table, std::uint32_t limit);

  // Whether the groups of `source` (a root), of all vertices in `between`, and of `target` (a root) stay within the
  // limit as one group. `up` holds the union-find parents of the groups.
  bool fits(Vertex source, std::span<const Vertex> between, Vertex target, std::span<const Vertex> up);
  void merge(Vertex root, Vertex target);

  // The exact number of arguments of a group with these members.
  std::uint32_t count(std::span<const Vertex> members);

 private:
  void gather(Vertex root);

  const ForwardGraph& graph_;
  const ArgumentTable& table_;
  const std::uint32_t limit_;
  std::vector<std::uint32_t> at_most_;  // by root: an upper bound of its group's arguments
  std::vector<Vertex> next_member_;     // circular list of the members of each group
  std::vector<Vertex> members_;
  std::vector<std::uint64_t> member_stamp_, value_stamp_;
  std::uint64_t now_ = 0;
};

}  // namespace fusec
