// An index expression with the symbols' values put in, flattened so that many elements of it are computed at a time
// without walking pointers.
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
    std::uint32_t id;  // axis, expression, or position in `atoms` of the two operands
  };
  struct Term {
    std::int64_t coefficient;
    std::vector<Factor> factors;
  };
  std::int64_t constant = 0;
  std::vector<Term> terms;
  std::vector<CompiledIndex> atoms;
};

// What the variables of an index are for some elements of a result ("lanes").
struct IndexLanes {
  std::size_t count;
  const std::vector<std::vector<std::int64_t>>& output_axes;  // by position among the result's axes, by lane
  const std::vector<std::int64_t>& loop_axes;                 // by axis: the same for every lane
  const std::vector<std::vector<Lane>>& values;               // by expression, by lane
};

// `position_of_axis`: for every axis, its position among the axes of the result, or -1 where a loop sets it.
CompiledIndex compile_index(const IndexExpr& e, std::span<const int> position_of_axis);

// Throws InternalError for a division by zero.
void evaluate_index(const CompiledIndex& c, const IndexLanes& lanes, std::vector<std::int64_t>& out);

}  // namespace fusec
