// Executes one node on the host, in the declared dtypes. The reference device runs every node of a graph with it;
// constant folding runs nodes with known operands.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "analysis/evaluate/scalar_functions.h"
#include "ir/graph.h"
#include "ir/host_tensor.h"

namespace fusec {

// Returns the node's results. `symbols` are the values of the graph's symbols. `tensor_of` returns the operands that
// are tensors (not numbers or dimensions). Operands and results are held as `precision` says (held_dtype). Not for
// tuples and their items. Throws Error(kInput) for external launchers and for collectives of several devices.
std::vector<HostTensor> evaluate_node(const Graph& graph, const Node& node, const std::vector<std::int64_t>& symbols,
                                      const std::function<const HostTensor&(ValueId)>& tensor_of,
                                      Precision precision = Precision::kDeclared);

// Executes the node if that takes at most `steps_left` scalar operations, and subtracts them. Otherwise returns
// nothing.
std::optional<std::vector<HostTensor>> evaluate_node_within(std::int64_t& steps_left, const Graph& graph,
                                                            const Node& node, const std::vector<std::int64_t>& symbols,
                                                            const std::function<const HostTensor&(ValueId)>& tensor_of,
                                                            Precision precision = Precision::kDeclared);

// Returns the shape's extents with the symbols' values filled in.
std::vector<std::int64_t> concrete_shape(const Shape& shape, const std::vector<std::int64_t>& symbols);

}  // namespace fusec
