#include "analysis/forward_graph.h"

#include "ir/budget.h"
#include "ir/error.h"

namespace fusec {

void ForwardGraphBuilder::reserve(std::size_t vertices, std::size_t operands) {
  graph_.pattern.reserve(vertices);
  graph_.external.reserve(vertices);
  operand_first_.reserve(vertices + 1);
  operands_.reserve(operands);
}

Vertex ForwardGraphBuilder::add(OpPattern pattern) {
  if (graph_.pattern.size() >= kNoVertex - 1) throw Error(ErrorKind::kInput, "more than 2^32-2 nodes in one graph");
  operand_first_.push_back(static_cast<std::uint32_t>(operands_.size()));
  graph_.pattern.push_back(pattern);
  graph_.external.push_back(0);
  return graph_.size() - 1;
}

void ForwardGraphBuilder::add_operand(Vertex producer) {
  if (producer + 1 >= graph_.size()) throw InternalError("forward graph: an operand does not come before its consumer");
  operands_.push_back(producer);
}

ForwardGraph ForwardGraphBuilder::finish() && {
  const Vertex n = graph_.size();
  operand_first_.push_back(static_cast<std::uint32_t>(operands_.size()));
  // Consumers are visited in order: if an operand's latest consumer is v, v reads it twice and the edge exists already.
  LargeVector<Vertex> latest(n, kNoVertex);
  graph_.first.assign(n + 1, 0);
  for (Vertex v = 0; v < n; ++v) {
    count_step();
    for (std::uint32_t i = operand_first_[v]; i < operand_first_[v + 1]; ++i) {
      Vertex& seen = latest[operands_[i]];
      if (seen == v) {
        operands_[i] = kNoVertex;
        continue;
      }
      seen = v;
      ++graph_.first[operands_[i] + 1];
    }
  }
  for (Vertex v = 0; v < n; ++v) graph_.first[v + 1] += graph_.first[v];
  graph_.targets.resize(graph_.first[n]);
  LargeVector<std::uint32_t>& next = latest;  // by vertex: the next free slot in targets
  next.assign(graph_.first.begin(), graph_.first.end() - 1);
  for (Vertex v = 0; v < n; ++v) {
    count_step();
    for (std::uint32_t i = operand_first_[v]; i < operand_first_[v + 1]; ++i) {
      if (operands_[i] != kNoVertex) graph_.targets[next[operands_[i]]++] = v;
    }
  }
  return std::move(graph_);
}

}  // namespace fusec
