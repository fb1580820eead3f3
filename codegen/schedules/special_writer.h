// What the kernels of scans, sorts and scatters are written with: coordinates with names, tensors at coordinates.
#pragma once

#include <string>
#include <vector>

#include "codegen/kernel_writer.h"

namespace fusec {

class SpecialWriter {
 public:
  SpecialWriter(const Graph& graph, NodeId node, const std::vector<IndexExpr>& counts);

  const Node& node() const { return node_; }
  const Attributes& attributes() const { return graph_.attributes(node_); }
  KernelWriter& writer() { return writer_; }
  const Bounds& bounds() const { return bounds_; }

  // A coordinate that is a C variable with values below `extent`.
  IndexExpr coordinate(std::string variable, IndexExpr extent);
  // Declares `const int NAME = ...` for each coordinate of a space, from a flat position in it.
  std::vector<IndexExpr> split(const std::string& flat, const Shape& space);
  std::string text(const IndexExpr& e) const { return text_(simplify(e, bounds_)); }
  std::string tight(const IndexExpr& e) const { return text_.tight(simplify(e, bounds_)); }

  // The operand's value in the compute type `as`: a tensor's element at a position, or a number.
  std::string load(std::size_t operand, const IndexExpr& position, ScalarType as);
  std::string store(std::size_t result, const std::string& position, const std::string& value);

  // One thread for each point: returns the flat position's variable.
  std::string open_threads(const IndexExpr& count, int threads);

  KernelSource finish(const IndexExpr& blocks, int threads, const std::string& schedule);

 private:
  const Graph& graph_;
  NodeId id_;
  const Node& node_;
  Bounds bounds_;
  std::vector<std::string> names_;  // of coordinates
  KernelWriter writer_;
  IndexText text_;
};

// A tensor as lines along one dimension: element k of line (outer, inner) is at (outer * length + k) * inner_count +
// inner.
struct Lines {
  IndexExpr outer = 1, length = 1, inner = 1;
  IndexExpr count() const { return outer * inner; }
};
Lines lines_along(const Shape& shape, std::int64_t dim);

}  // namespace fusec
