// Prints the unaligned vector loads that schedule/movement/unaligned_load plans.
#pragma once

#include <string>

#include "codegen/expr/emit_expr.h"
#include "schedule/movement/unaligned_load.h"

namespace fusec {

// The text "load_window<...>(...)", the words of one window. `wanted` is a condition; "" means always. `sometimes`:
// part of a window may lie outside of the tensor, either because it is masked or because no lane uses it. `step`:
// threads to the next group.
std::string unaligned_load_text(ExprEmitter& emitter, const UnalignedLoad& window, const std::string& wanted,
                                bool sometimes, int step);

}  // namespace fusec
