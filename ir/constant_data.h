// The bytes of a constant that the model gives as `data`: rounded to the dtype, 4-bit values packed two to a byte.
#pragma once

#include <cstddef>
#include <vector>

#include "ir/graph.h"

namespace fusec {

std::vector<std::byte> constant_bytes(const std::vector<Scalar>& data, DType dtype);

}  // namespace fusec
