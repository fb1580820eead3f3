// What attention's kernel stores beside its result: weights or scores, an element for each row and key; totals and
// their logarithms, an element for each row.
#pragma once

#include <string_view>

#include "schedule/attention/attention_form.h"

namespace fusec {

// Sorts the outputs beside the result into `beside` and `of_rows`; why that cannot be, else "".
std::string_view classify_outputs(Attention& form);

// Which output beside has an element of the scores' own type for each of them: `waiting`. Tensor cores multiply faster
// than scores go to memory and back, so it is for kernels without them.
void find_score_buffer(Attention& form);

}  // namespace fusec
