// Where groups of rows end (schedule/gemm/grouped_gemm.h), in order: what a block finds out before it looks for its
// rows.
#pragma once

#include <string>

#include "codegen/expr/emit_expr.h"
#include "schedule/gemm/grouped_gemm.h"

namespace fusec {

// All threads of the block read the offsets into `memory`, an int* with room for twice as many as there are groups,
// and sort them; where the sorted ones begin. Barriers of the block stand before and behind that.
std::string emit_group_ends(ExprEmitter& emitter, const Contraction& product, const GroupedGemm& groups, int threads,
                            const std::string& memory);

}  // namespace fusec
