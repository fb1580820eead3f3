// A pass from graph to graph makes the new graph node by node: inputs and constants stand there already, nodes are
// kept, made anew, or their results replaced by other values of the new graph.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "ir/graph.h"

namespace fusec {

class GraphCopy {
 public:
  // `with_constant` says which constants the new graph has.
  template <class Predicate>
  GraphCopy(const Graph& from, Predicate with_constant)
      : from_(from), to_(from.emptied()), now_(from.value_count(), kNone) {
    copy_inputs();
    for (const Constant& constant : from.constants)
      if (with_constant(constant)) copy_constant(constant);
  }
  explicit GraphCopy(const Graph& from) : GraphCopy(from, [](const Constant&) { return true; }) {}

  Graph& graph() { return to_; }
  const Graph& graph() const { return to_; }

  // What an operand of the old graph is in the new one. Equal numbers become one value, so that duplicates are seen.
  ValueId now(ValueId old);
  bool has(ValueId old) const { return now_[old] != kNone; }
  void replace(ValueId old, ValueId now) { now_[old] = now; }

  // The old node with its operands in the new graph, ready to be changed and added.
  Node with_new_operands(const Node& old);
  // Adds the node in place of `old`, whose results keep names and types.
  NodeId add(Node node, const Node& old);
  NodeId keep(const Node& old) { return add(with_new_operands(old), old); }

  // With outputs and aliases.
  Graph finish() &&;

 private:
  void copy_inputs();
  void copy_constant(const Constant& constant);

  const Graph& from_;
  Graph to_;
  std::vector<ValueId> now_;  // by value of the old graph
  std::map<std::tuple<Category, std::int64_t, std::uint64_t>, ValueId> numbers_;
};

}  // namespace fusec
