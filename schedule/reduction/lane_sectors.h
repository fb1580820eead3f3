// Sectors of memory that a warp asks for where neighbouring lanes take elements of a row one by one, or by small
// vectors: those of what lies apart are an element's, or a short piece's. Counted for each tensor that is read or
// stored, in the order in which the loops go over a row.
//
//   a row of 1024 places, 10 neighbouring float16 of each    20 bytes of one or two sectors: 1.8 times what they are
#pragma once

#include <cstdint>
#include <optional>

#include "ir/graph.h"
#include "schedule/reduction/row_form.h"

namespace fusec {

// The difference that a step along the axis makes, where that is the same everywhere.
std::optional<IndexExpr> difference_along(const IndexExpr& at, std::uint32_t axis, const Bounds& bounds);

// Their bytes over those of the elements of all tensors; lanes take places along `neighbours` (one of the rows' axes)
// if that is given, else along the row.
double sector_overfetch_of_lanes(const RowForm& form, const Graph& graph, std::optional<std::uint32_t> neighbours);

}  // namespace fusec
