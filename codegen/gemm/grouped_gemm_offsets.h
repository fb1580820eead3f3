// Emits the sorted ends of the groups of rows (schedule/gemm/grouped_gemm.h), before a block determines its rows.
#pragma once

#include <string>

#include "codegen/expr/emit_expr.h"
#include "schedule/gemm/grouped_gemm.h"

namespace fusec {

// All threads of the block read the offsets into `memory` (an int* with twice as many elements as groups) and sort
// them. Returns the text of a pointer to the sorted ends. Barriers come before and after.
std::string emit_group_ends(ExprEmitter& emitter, const Contraction& contraction, const GroupedGemm& groups,
                            int threads, const std::string& memory);

}  // namespace fusec
