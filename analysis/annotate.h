// Op pattern annotation: derives the kind of every node from its formula, as TVM derives it from loop nests, so it
// works for a user's own ops too. The kind depends on shapes: add([8,16,32], [32]) is elementwise, because one operand
// is indexed as the result is; add([8,1,32], [1,16,32]) is broadcast.
//
//   add(x, w)        elemwise             out[i, j] reads x[i, j]
//   transpose(x)     injective            out[i, j] reads x[j, i]
//   sum(x)           comm_reduce          one reduction; each index of its operand is a single axis
//   softmax, mean    out_ewise_fusable    a reduction and other operations
//   matmul           out_ewise_fusable    a reduction; several results read each element of an operand
#pragma once

#include <vector>

#include "ir/fusion_plan.h"
#include "ir/graph.h"
#include "ir/op_pattern.h"

namespace fusec {

enum class PatternSource : std::uint8_t {
  kTvm,      // TVM's kind where TVM has the op, else the formula's
  kFormula,  // the kind that the formula proves
};

// Returns the source that a strategy uses: `full` uses formulas; `tvm` uses TVM's kinds, and so does `none` in its
// reports.
constexpr PatternSource pattern_source(Strategy strategy) {
  return strategy == Strategy::kFull ? PatternSource::kFormula : PatternSource::kTvm;
}

// Returns the kind of each node, by NodeId. A kind given in the file overrides the derived one. Throws Error(kInput) if
// the given kind is below the derived one; nodes of custom ops may have any kind.
std::vector<OpPattern> annotate(const Graph& graph, PatternSource source);

// Throws as `annotate` does. Call it on the graph as read from the file, before nodes are rewritten or dropped.
void require_allowed_kinds(const Graph& graph, PatternSource source);

// Returns the derived kind of one node and ignores the kind given in the file.
OpPattern derived_pattern(const Graph& graph, const Node& node, PatternSource source);

// Whether the op is a matrix product, a convolution, attention or a quantization, by its family.
bool is_product(const Node& node);

}  // namespace fusec
