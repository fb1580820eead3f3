// A sum or mean over all of what is made of rows that a softmax has reduced, whatever its dimensions: first the rows'
// sums, which the softmax's kernel makes as well, then the sum of these. As one, its operand would be stored.
//
//   p = softmax(x, dim=-1)                    p = softmax(x, dim=-1)
//   m = mul(p, t)                      ->     m = mul(p, t)
//   y = sum(m)                                r = sum(m, dim=-1);  y = sum(r)
//
// What stands between the two is float32 where elements are narrower, as sums in a kernel are. Only the order of the
// additions is another.
#pragma once

#include "transforms/canonical_graph.h"

namespace fusec {

void sum_rows_first(CanonicalGraph& canonical);

}  // namespace fusec
