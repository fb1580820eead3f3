// Windows of what a thread's lanes read (schedule/movement/unaligned_load), as text.
#pragma once

#include <string>

#include "codegen/expr/emit_expr.h"
#include "schedule/movement/unaligned_load.h"

namespace fusec {

// Its words, "load_window<...>(...)": where `wanted` holds, "" is always. Only if it is there `sometimes` may some of
// it lie outside of the tensor: where it is not wanted, or what no lane takes. The next group is `step` threads away.
std::string unaligned_load_text(ExprEmitter& emitter, const UnalignedLoad& window, const std::string& wanted,
                                bool sometimes, int step);

}  // namespace fusec
