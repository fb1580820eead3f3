// A constant's elements: as `data` gives them, as bytes in memory, and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/graph.h"
#include "ir/host_tensor.h"

namespace fusec {

// Rounded to the dtype, 4-bit values packed two to a byte.
std::vector<std::byte> constant_bytes(const std::vector<Scalar>& data, DType dtype);

// A tensor's elements as `data` has them: constant_bytes makes the same bytes of them again (a NaN may become another
// NaN).
std::vector<Scalar> constant_data(const HostTensor& tensor);

// The one value that all elements of a constant have, if it has data and that is so.
std::optional<Scalar> uniform_value(const Constant& constant);

// Whole numbers that grow by as much from each place of a dimension to the next: an element is `start` and for each
// dimension its place times the dimension's step.
struct Progression {
  std::int64_t start = 0;
  std::vector<std::int64_t> steps;  // by dimension
};

// What a constant's elements are, if it has data and at least four, which are not all the same.
std::optional<Progression> progression_of(const Graph& graph, const Constant& constant);

// The number that a value is in all its elements: a number operand, or such a constant. Nothing for kNone.
std::optional<Scalar> number_of(const Graph& graph, ValueId v);

}  // namespace fusec
