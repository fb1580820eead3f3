// Helper to write kernels for scans, sorts and scatters: named coordinates, and tensors at coordinates.
//
// Results with 4-bit elements are first written to scratch memory, one per byte, because the two halves of a byte may
// belong to different threads. A separate kernel packs them (pack_nibbles).
#pragma once

#include <string>
#include <vector>

#include "codegen/expr/kernel_writer.h"

namespace fusec {

class SpecialWriter {
 public:
  SpecialWriter(const Graph& graph, NodeId node, const std::vector<IndexExpr>& counts);

  const Node& node() const { return node_; }
  const Attributes& attributes() const { return graph_.attributes(node_); }
  KernelWriter& writer() { return writer_; }
  const Bounds& bounds() const { return bounds_; }

  // A coordinate held in a C variable, with values below `extent`.
  IndexExpr coordinate(std::string variable, IndexExpr extent);
  // Declares `const int NAME = ...` for each coordinate of `space`, computed from a flat position.
  std::vector<IndexExpr> split(const std::string& flat, const Shape& space);
  std::string text(const IndexExpr& e) const { return text_(simplify(e, bounds_)); }
  std::string tight(const IndexExpr& e) const { return text_.tight(simplify(e, bounds_)); }

  // The operand's value in the compute type `as`: a tensor element at a position, or a number.
  std::string load(std::size_t operand, const IndexExpr& position, ScalarType as);
  std::string store(std::size_t result, const std::string& position, const std::string& value);
  // The result's current element in memory at a position, in its compute type.
  std::string held(std::size_t result, const std::string& position);
  // result[to] = operand[from], both of one dtype.
  std::string move(std::size_t result, const std::string& to, std::size_t operand, const std::string& from);

  // The scratch memory of a 4-bit result, one element per byte.
  const std::string& nibbles(std::size_t result) const { return nibbles_.at(result); }

  // Opens one thread per point and returns the variable of the flat position.
  std::string open_threads(const IndexExpr& count, int threads);

  KernelSource finish(const IndexExpr& blocks, int threads, KernelKind kind);

 private:
  const Graph& graph_;
  NodeId id_;
  const Node& node_;
  Bounds bounds_;
  std::string stored(std::size_t result, const std::string& position);
  std::string element_text(ValueId v, const std::string& position);

  std::vector<std::string> names_;    // of coordinates
  std::vector<std::string> nibbles_;  // by result: its scratch memory of unpacked 4-bit elements; "" for other dtypes
  KernelWriter writer_;
  IndexText text_;
};

// Kernels that unpack the operand that a 4-bit result starts from, and that pack the result.
KernelSource unpack_nibbles(const Graph& graph, NodeId node, std::size_t result, std::size_t operand);
KernelSource pack_nibbles(const Graph& graph, NodeId node, std::size_t result);

// A tensor as lines along one dimension. Element k of line (outer, inner) is at (outer * length + k) * inner_count +
// inner.
struct Lines {
  IndexExpr outer = 1, length = 1, inner = 1;
  IndexExpr count() const { return outer * inner; }
};
Lines lines_along(const Shape& shape, std::int64_t dim);

}  // namespace fusec
