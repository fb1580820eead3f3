// Splits a sum or mean over rows and further dimensions, if its operand is made of a softmax over these rows: first sum
// each row, which the kernel of the softmax can do as well, then sum the row sums. A single sum would need its operand
// stored.
//
//   p = softmax(x, dim=-1)                    p = softmax(x, dim=-1)
//   m = mul(p, t)                      ->     m = mul(p, t)
//   y = sum(m)                                r = sum(m, dim=-1);  y = sum(r)
//
// The row sums are float32 if the elements are narrower, like accumulators in a kernel. Only the order of additions
// changes.
#pragma once

#include "transforms/canonical_graph.h"

namespace fusec {

void sum_rows_first(CanonicalGraph& canonical);

}  // namespace fusec
