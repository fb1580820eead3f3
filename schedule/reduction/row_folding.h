// Folds a row whose parts are stored together, or one part of which is stored, into pieces of that length. One loop
// over the row then keeps what the other reads.
//
//   h = layer_norm(x), y = h[:, :n] * gelu(h[:, n:])      sums over k < n of x[k] + x[n + k];  x[j], x[n + j] are kept
//   softmax(concat(x, sink))[:, :n]                       max(max over k < n of x[k], sink);   x[j] is kept
#pragma once

#include "schedule/reduction/row_form.h"

namespace fusec {

// Returns the form unchanged if its columns would reuse nothing of the reduced elements, or if rows are too long to
// keep.
RowForm with_rows_folded(RowForm form, const Graph& graph);

}  // namespace fusec
