// One node executed on the host, in the stated dtypes: what the reference device does with every node of a graph, and
// constant folding with a node whose operands are known.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "analysis/evaluate/scalar_functions.h"
#include "ir/graph.h"
#include "ir/host_tensor.h"

namespace fusec {

// The node's results. `symbols` are the values of the graph's symbols; `tensor_of` gives the operands that are tensors
// (numbers and dimensions it is not asked for), held as `precision` holds them, as the results are. Not for tuples and
// their items, which compute nothing. Throws Error(kInput) for what no host can do: launchers from outside, collectives
// of several devices.
std::vector<HostTensor> evaluate_node(const Graph& graph, const Node& node, const std::vector<std::int64_t>& symbols,
                                      const std::function<const HostTensor&(ValueId)>& tensor_of,
                                      Precision precision = Precision::kDeclared);

// The same where it takes at most `steps_left` scalar operations, which are then taken off; else nothing.
std::optional<std::vector<HostTensor>> evaluate_node_within(std::int64_t& steps_left, const Graph& graph,
                                                            const Node& node, const std::vector<std::int64_t>& symbols,
                                                            const std::function<const HostTensor&(ValueId)>& tensor_of,
                                                            Precision precision = Precision::kDeclared);

// A shape's extents under the symbols' values.
std::vector<std::int64_t> concrete_shape(const Shape& shape, const std::vector<std::int64_t>& symbols);

}  // namespace fusec
