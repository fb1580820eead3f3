// An index expression with the symbols' values filled in, flattened into arrays. It evaluates many elements at a time
// without following pointers.
//
//   (i * 4 + j) // n    at n = 3    ->    floordiv of two atoms: {4 * axis i + axis j}, {3}
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/evaluate/scalar_functions.h"
#include "ir/index_expr.h"

namespace fusec {

struct CompiledIndex {
  struct Factor {
    enum class Kind : std::uint8_t { kOutputAxis, kLoopAxis, kValue, kFloorDiv, kMod, kMin, kMax };
    Kind kind;
    std::uint32_t id;  // axis, expression, or index in `atoms` of the first of two operands
  };
  struct Term {
    std::int64_t coefficient;
    std::vector<Factor> factors;
  };
  std::int64_t constant = 0;
  std::vector<Term> terms;
  std::vector<CompiledIndex> atoms;
};

// Values of an index's variables for a block of result elements ("lanes").
struct IndexLanes {
  std::size_t count;
  const std::vector<std::vector<std::int64_t>>& output_axes;  // by position among the result's axes, then by lane
  const std::vector<std::int64_t>& loop_axes;                 // by axis; equal for all lanes
  const std::vector<std::vector<Lane>>& values;               // by expression, then by lane
};

// `position_of_axis`, by axis: the position among the result's axes, or -1 for the axis of a loop.
CompiledIndex compile_index(const IndexExpr& e, std::span<const int> position_of_axis);

// Throws InternalError for a division by zero.
void evaluate_index(const CompiledIndex& c, const IndexLanes& lanes, std::vector<std::int64_t>& out);

}  // namespace fusec
