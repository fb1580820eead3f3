// A concat whose operands are made where it is: each can be stored in its place by the kernel that makes it.
//
//   y = relu(concat(linear(x, v), linear(x, w)))   two products, of y[:, :16] and of y[:, 16:], side by side
//
// Where values without reductions are joined, one expression with a choice in it is as good: these are left alone.
#pragma once

#include <optional>

#include "analysis/lowering/inlining.h"

namespace fusec {

// The concat of which `v` is made element by element, if its own value is not to be stored.
std::optional<ValueId> concat_below(const Graph& graph, const Inlining& inlining, ValueId v);

// Whether there is one, of which some operand is made in this group, of products or other reductions.
bool may_be_in_parts(const Graph& graph, const Inlining& inlining, ValueId v);

// Which part of a value an operand of the concat below makes.
struct ConcatPart {
  ValueId operand = kNone;
  std::size_t dim = 0;
  IndexExpr offset;
};
std::vector<ConcatPart> parts_of(const Graph& graph, const Inlining& inlining, ValueId v);

}  // namespace fusec
