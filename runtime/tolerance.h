// How far a value may be from the reference's, which rounds the result of every node to its dtype where a kernel keeps
// what it needs itself in registers.
//
//   h: bfloat16 = silu(g); y: float32 = cast(h)        y may differ by as much as h: the reference has rounded h
#pragma once

#include <map>
#include <optional>
#include <string>

#include "ir/graph.h"

namespace fusec {

struct Tolerance {
  double rtol, atol;
  double share = 1;         // so many of an integer output's elements may be off, one always
  bool is_stepped = false;  // floats became steps on the way: errors are whole steps, wherever a value is between two
};
Tolerance default_tolerance(DType dtype);

struct Tolerances {
  std::optional<Tolerance> given;  // by the user, for all float values
  std::map<std::string, Tolerance> by_value;

  Tolerance of(const std::string& value, DType dtype) const;
};

// For a value whose way from the inputs leads through nodes with results in float16 or bfloat16, theirs, where it is
// the wider; else that of its own dtype. Narrower dtypes do not count: what is quantized is quantized in kernels as
// well. What is quantized to integers behind such nodes may be one step off, behind floats of other dtypes that were
// computed one element in a thousand (one that lies halfway between two); other integers never.
// `allow_tf32`: the same holds of what float32 products lead to, whose factors then have ten bits of mantissa.
Tolerances tolerances_of(const Graph& graph, const std::optional<Tolerance>& given, bool allow_tf32 = false);

}  // namespace fusec
