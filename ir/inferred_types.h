// Result types of nodes, remembered by op, attributes, operand types and the types that the file declares for the
// results. A model of repeated layers infers each layer's types once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"

namespace fusec {

class InferredTypes {
 public:
  // The result types of an equal earlier node, or nullptr. Nodes with a number or a dimension as an operand are not
  // remembered.
  const std::vector<TypeId>* find(const Graph& graph, const Node& node, std::span<const TypeId> declared);
  // Remembers the types of the node that find() was last called for. The checks at launch of an equal node would be the
  // same, so they are not made again.
  void add(const std::vector<TypeId>& types);

 private:
  struct KeyHash {
    std::size_t operator()(const std::vector<std::uint64_t>& key) const;
  };

  std::vector<std::uint64_t> key_;  // of the last node; empty if it is not remembered
  std::unordered_map<std::vector<std::uint64_t>, std::vector<TypeId>, KeyHash> types_;
};

}  // namespace fusec
