#include "analysis/forward_graph.h"

#include <utility>

#include "ir/error.h"

namespace fusec {

void ForwardGraphBuilder::reserve(std::size_t vertices, std::size_t operands) {
  graph_.pattern.reserve(vertices);
  graph_.external.reserve(vertices);
  latest_.reserve(vertices);
  operands_.first.reserve(vertices + 1);
  operands_.targets.reserve(operands);
}

Vertex ForwardGraphBuilder::add(OpPattern pattern) {
  if (graph_.pattern.size() >= kNoVertex - 1) throw Error(ErrorKind::kInput, "more than 2^32-2 nodes in one graph");
  operands_.first.push_back(static_cast<std::uint32_t>(operands_.targets.size()));
  graph_.pattern.push_back(pattern);
  graph_.external.push_back(0);
  latest_.push_back(kNoVertex);
  return graph_.size() - 1;
}

void ForwardGraphBuilder::add_operand(Vertex producer) {
  if (producer + 1 >= graph_.size()) throw InternalError("forward graph: an operand does not come before its consumer");
  const Vertex newest = graph_.size() - 1;
  if (std::exchange(latest_[producer], newest) != newest) operands_.targets.push_back(producer);
}

ForwardGraph ForwardGraphBuilder::finish() && {
  operands_.first.push_back(static_cast<std::uint32_t>(operands_.targets.size()));
  latest_ = {};
  graph_.edges = reversed(operands_);
  return std::move(graph_);
}

}  // namespace fusec
