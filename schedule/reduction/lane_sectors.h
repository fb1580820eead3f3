// Counts the memory sectors that a warp requests if neighbouring lanes take elements of a row one by one, or by small
// vectors. Strided elements use only part of a sector. Counted for each loaded or stored tensor, in the order of the
// loops over a row.
//
//   a row of 1024 places, 10 neighbouring float16 of each    20 bytes in one or two sectors: overfetch 1.8
#pragma once

#include <cstdint>
#include <optional>

#include "ir/graph.h"
#include "schedule/reduction/row_form.h"

namespace fusec {

// The stride along the axis, if it is uniform.
std::optional<IndexExpr> difference_along(const IndexExpr& at, std::uint32_t axis, const Bounds& bounds);

// Bytes of the requested sectors divided by bytes of the elements, over all tensors. Lanes run along `neighbours` (an
// axis of rows) if given, else along the row.
double sector_overfetch_of_lanes(const RowForm& form, const Graph& graph, std::optional<std::uint32_t> neighbours);

}  // namespace fusec
