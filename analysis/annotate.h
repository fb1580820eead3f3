// Op pattern annotation: the kind of every node, derived from its formula as TVM derives it from loop nests, so that it
// holds for a user's own op too. The kind depends on shapes: a broadcasting add of [8,16,32] and [32] is elementwise,
// since one operand is indexed as the result is; [8,1,32] with [1,16,32] is broadcast.
//
//   add(x, w)        elemwise             out[i, j] reads x[i, j]
//   transpose(x)     injective            out[i, j] reads x[j, i]
//   sum(x)           comm_reduce          nothing but the reduction of plainly indexed operands
//   softmax, mean    out_ewise_fusable    a reduction and more; matmul, whose operands are reused
#pragma once

#include <vector>

#include "ir/fusion_plan.h"
#include "ir/graph.h"
#include "ir/op_pattern.h"

namespace fusec {

enum class PatternSource : std::uint8_t {
  kTvm,      // TVM's kind for every op that TVM has one for, the formula's elsewhere
  kFormula,  // what the formula proves
};

// `full` reasons with what formulas prove; `tvm`, and `none` for its reports, with what TVM says.
constexpr PatternSource pattern_source(Strategy strategy) {
  return strategy == Strategy::kFull ? PatternSource::kFormula : PatternSource::kTvm;
}

// By node. A kind that the file gives overrules the derived one; one below it throws Error(kInput) (custom ops are
// free).
std::vector<OpPattern> annotate(const Graph& graph, PatternSource source);

// Throws as `annotate` does: for the nodes of a file, before any of them are rewritten or dropped.
void require_allowed_kinds(const Graph& graph, PatternSource source);

// The derived kind of one node, whatever the file says.
OpPattern derived_pattern(const Graph& graph, const Node& node, PatternSource source);

}  // namespace fusec
