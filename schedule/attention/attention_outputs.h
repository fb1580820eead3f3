// What an attention kernel stores besides its result: weights or scores with one element per row and key, and totals or
// their logarithms with one element per row.
#pragma once

#include <string_view>

#include "schedule/attention/attention_form.h"

namespace fusec {

// Sorts the outputs besides the result into `extra_outputs` and `row_outputs`. Returns why that is impossible, else "".
std::string_view classify_outputs(Attention& form);

// Sets `score_buffer` to an extra output of the scores' own type that has an element for each score. Call it only
// without tensor cores, which compute scores faster than memory can store and reload them.
void find_score_buffer(Attention& form);

}  // namespace fusec
