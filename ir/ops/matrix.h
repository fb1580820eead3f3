// The op rows of the matrix family and their shared code. A matrix product is a sum of a * b over the contracted axes
// with a and b loads; analysis recognizes contractions by this form.
#pragma once

#include <string>
#include <vector>

#include "ir/ops/common.h"

namespace fusec::ops {

std::vector<OpDef> product_ops();      // matmul, linear, bmm, addmm
std::vector<OpDef> convolution_ops();  // conv1d ... conv_transpose3d
std::vector<OpDef> attention_ops();    // scaled_dot_product_attention

// The sum of `body` over axes of these extents; an extent of 1 makes no axis.
E sum_over(Formula& f, const std::vector<Dim>& extents, const std::function<E(Formula::Index)>& body);

// Throws OpError unless the operand has the dtype of operand 0.
void require_same_dtype(const OpCall& call, std::size_t operand);

// The index of an operand's dimensions [0, count) that broadcast to the output dimensions [0, of) at `index`.
std::vector<IndexExpr> broadcast_index(const Shape& shape, std::size_t count, Formula::Index index, std::size_t of);

// A list attribute with one entry per dimension, `count` entries. A single entry counts for all dimensions. Entries
// below `least` are an error.
std::vector<std::int64_t> per_dimension(const OpCall& call, std::string_view attribute, std::size_t count,
                                        std::int64_t otherwise, std::int64_t least);
// A list attribute with one entry per dimension, which inference has accepted already.
std::vector<std::int64_t> per_dimension(const Attributes& attributes, std::string_view attribute, std::size_t count,
                                        std::int64_t otherwise);

}  // namespace fusec::ops
