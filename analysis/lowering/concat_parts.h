// A concat whose operands are computed in the same group: each operand's kernel can store it in its place in the
// result.
//
//   y = relu(concat(linear(x, v), linear(x, w)))   two GEMMs, of y[:, :16] and of y[:, 16:], in one launch
//
// A concat of values without reductions is not split: one expression that selects is as good.
#pragma once

#include <optional>

#include "analysis/lowering/inlining.h"

namespace fusec {

// Returns the concat that `v` is made of element by element, if the concat itself need not be stored.
std::optional<ValueId> concat_below(const Graph& graph, const Inlining& inlining, ValueId v);

// Returns whether there is such a concat, and this group computes some operand of it with a reduction.
bool may_be_in_parts(const Graph& graph, const Inlining& inlining, ValueId v);

// The part of a value that one operand of its concat makes: elements from `offset` on along `dim`.
struct ConcatPart {
  ValueId operand = kNone;
  std::size_t dim = 0;
  IndexExpr offset;
};
std::vector<ConcatPart> parts_of(const Graph& graph, const Inlining& inlining, ValueId v);

}  // namespace fusec
