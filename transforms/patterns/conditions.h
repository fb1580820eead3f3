// What a pattern may ask of the values and attributes that it found.
//
//   dtype(x, float16, bfloat16)    its dtype is one of these
//   rank(x, 2), min_rank(x, 2)     how many dimensions it has
//   extent(x, -1, 128)             that dimension's extent, known now
//   same_extent(x, -1, y, 0)       two dimensions agree
//   same_shape(a, b), same_dtype(a, b), same_type(a, b)
//   same_size(a, b), same_rows(a, b)  as many elements; all dimensions but the last together as many
//   made_by(x, clamp, relu)        one of these ops makes it
//   quantized(x)                   its dtype is no float of 16 bits or more, or a quantized op makes it, views and
//   casts
//                                  behind it
//   number(s), tensor(x)           a number operand or a constant of one number; or not
//   greater(s, 0), less(s, 1)      of such a number
//   constant(x), data(x)           a constant of the model; one whose elements the model gives
//   vector(b, x)                   runs along the last dimension of x alone
//   last_dim(d, x), last_dims(d, x)  the attribute names the last dimension of x, or dimensions up to its last
//   opposite(a, b)                 two numbers of which one is the other's negative
//   equals(d, 1)                   the attribute, or the number, is this one
//   distinct(a, b)                 two values, not one
//   independent(a, b)              and neither is made of the other by a few elementwise nodes
//
// A condition on a value or an attribute that the match did not meet (another alternative did) holds.
#pragma once

#include <string>

#include "transforms/patterns/pattern.h"

namespace fusec {

// "" where the condition is well formed, else what is wrong with it.
std::string wrong_in_condition(const PatternCondition& condition);
std::string known_conditions();

// "" where it holds, else why not.
std::string unmet(const PatternCondition& condition, const PatternCheckContext& context);

// The number that a value is, in all its elements.
std::optional<Scalar> number_of(const Graph& graph, ValueId v);

}  // namespace fusec
