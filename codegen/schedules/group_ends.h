// Where groups of rows end (analysis/row_groups.h), in order: what a block finds out before it looks for its rows.
#pragma once

#include <string>

#include "analysis/row_groups.h"
#include "codegen/emit_expr.h"

namespace fusec {

// All threads of the block read the offsets into `memory`, an int* with room for twice as many as there are groups,
// and sort them; where the sorted ones begin. Barriers of the block stand before and behind that.
std::string declare_group_ends(ExprEmitter& emitter, const Product& product, const RowGroups& groups, int threads,
                               const std::string& memory);

}  // namespace fusec
