// The rows of the matrix family by what they do, and what they share: products are sums of a * b over the contracted
// axes, a and b loads, so that whoever reads a formula recognizes a contraction.
#pragma once

#include <string>
#include <vector>

#include "ir/ops/common.h"

namespace fusec::ops {

std::vector<OpDef> product_ops();      // matmul, linear, bmm, addmm
std::vector<OpDef> convolution_ops();  // conv1d ... conv_transpose3d
std::vector<OpDef> attention_ops();    // scaled_dot_product_attention

// The sum over these extents; an extent of 1 makes no axis.
E sum_over(Formula& f, const std::vector<Dim>& extents, const std::function<E(Formula::Index)>& body);

// Operand `operand` must have the dtype of operand 0.
void require_same_dtype(const OpCall& call, std::size_t operand);

// The index of an operand's dimensions [0, count) that broadcast to the output dimensions [0, of) at `index`.
std::vector<IndexExpr> broadcast_index(const Shape& shape, std::size_t count, Formula::Index index, std::size_t of);

// A list attribute with an entry for each of `count` dimensions; one entry stands for all. Each must be `least` or
// more.
std::vector<std::int64_t> per_dimension(const OpCall& call, std::string_view attribute, std::size_t count,
                                        std::int64_t otherwise, std::int64_t least);
// The same where inference has accepted it.
std::vector<std::int64_t> per_dimension(const Attributes& attributes, std::string_view attribute, std::size_t count,
                                        std::int64_t otherwise);

}  // namespace fusec::ops
