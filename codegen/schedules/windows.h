// Windows of what a thread's lanes read (analysis/lane_windows), as text.
#pragma once

#include <string>

#include "analysis/lane_windows.h"
#include "codegen/emit_expr.h"

namespace fusec {

// Its words, "load_window<...>(...)": where `wanted` holds, "" is always. Only if it is there `sometimes` may some of
// it lie outside of the tensor: where it is not wanted, or what no lane takes. The next group is `step` threads away.
std::string window_text(ExprEmitter& emitter, const Window& window, const std::string& wanted, bool sometimes,
                        int step);

}  // namespace fusec
