// Elements of constants: conversion between Constant::data and bytes in memory, and simple structure in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/graph.h"
#include "ir/host_tensor.h"

namespace fusec {

// The elements in memory order, rounded to the dtype; 4-bit values are packed two to a byte.
std::vector<std::byte> constant_bytes(const std::vector<Scalar>& data, DType dtype);

// A tensor's elements as Constant::data. constant_bytes turns them into the same bytes again, except that a NaN may
// become another NaN.
std::vector<Scalar> constant_data(const HostTensor& tensor);

// The value that all elements of a constant share; nothing if they differ or the constant has no data.
std::optional<Scalar> uniform_value(const Constant& constant);

// Whole numbers that are linear in the index: x[i, j, ...] = start + i * steps[0] + j * steps[1] + ...
struct Progression {
  std::int64_t start = 0;
  std::vector<std::int64_t> steps;  // by dimension
};

// The progression that a constant holds. Nothing without data, for fewer than four elements and for equal elements.
std::optional<Progression> progression_of(const Graph& graph, const Constant& constant);

// The number in all elements of a value: a number operand, a uniform constant or the result of `full`. Nothing for
// other values and for kNone.
std::optional<Scalar> number_of(const Graph& graph, ValueId v);

}  // namespace fusec
