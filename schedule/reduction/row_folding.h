// Rows of which parts are stored together, or a part is, reduced in pieces as long as those, so that one loop over the
// row keeps what the other reads.
//
//   h = layer_norm(x), y = h[:, :n] * gelu(h[:, n:])      sums over k < n of x[k] + x[n + k];  x[j], x[n + j] are kept
//   softmax(concat(x, sink))[:, :n]                       max(max over k < n of x[k], sink);   x[j] is kept
#pragma once

#include "schedule/reduction/row_form.h"

namespace fusec {

// The form as it is where its columns would find nothing of what is reduced, or rows are too long to be kept.
RowForm with_rows_folded(RowForm form, const Graph& graph);

}  // namespace fusec
