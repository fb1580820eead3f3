// How much a value may differ from the reference's. The reference rounds the result of every node to its dtype; a fused
// kernel keeps intermediate values in registers without rounding.
//
//   h: bfloat16 = silu(g); y: float32 = cast(h)        y gets the tolerance of bfloat16: the reference rounds h
#pragma once

#include <map>
#include <optional>
#include <string>

#include "ir/graph.h"

namespace fusec {

struct Tolerance {
  double rtol, atol;
  double share = 1;         // fraction of an integer output's elements that may differ; one element always may
  bool is_stepped = false;  // a discontinuous op (round, quantize, compare) precedes: errors may be whole steps
};
Tolerance default_tolerance(DType dtype);

struct Tolerances {
  std::optional<Tolerance> given;  // by the user, for all float values
  std::map<std::string, Tolerance> by_value;

  Tolerance of(const std::string& value, DType dtype) const;
};

// The tolerance of each value: that of its own dtype, or that of float16 or bfloat16 if it is wider and a node with
// such a result is on a path from the inputs. Narrower dtypes on the path do not count, since kernels quantize too.
// Integers made by rounding floats: after float16 or bfloat16 results all elements may be one step off; after other
// computed floats one in a thousand (values halfway between two steps). Other integers must be equal.
// `allow_tf32`: float32 matrix products widen the tolerance too, since their operands have ten bits of mantissa.
Tolerances tolerances_of(const Graph& graph, const std::optional<Tolerance>& given, bool allow_tf32 = false);

}  // namespace fusec
