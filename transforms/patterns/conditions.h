// What a pattern may ask of the values and attributes that it found.
//
//   dtype(x, float16, bfloat16)    its dtype is one of these
//   never_nan(x)                   its dtype is no float
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
//   greater(s, 0), less(s, 1)      of such a number, or of an attribute
//   constant(x), data(x)           a constant of the model; one whose elements the model gives
//   made_of_constants(x)           a constant, or made of constants alone: M_prepare can compute with it
//   vector(b, x)                   runs along the last dimension of x alone
//   last_dim(d, x), last_dims(d, x)  the attribute names the last dimension of x, or dimensions up to its last
//   opposite(a, b)                 two numbers of which one is the other's negative
//   equals(a, 1, 1.702)            the attribute, or the number, is one of these: a whole one exactly, another to a
//                                  millionth, or as rounded to the constant's dtype
//   distinct(a, b)                 two values, not one
//   independent(a, b)              and neither is made of the other by a few elementwise nodes
//   given(x)                       a constant or an input of the model, or a cast of one
//   widened(a, b)                  a is of b's dtype, or of a wider float dtype
//   no_narrower(a, b)              a's elements have as many bits as b's, or more, or b is given
//   count(n, x, d), per_count(n, x, d)
//                                  a number that is how many elements x has along the dimensions d, or 1 over it
//   along_channels(v, x)           v varies along C of x[N, C, ...] alone: [C, 1, ..] or [1, C, 1, ..]
//   along_batch_and_channels(v, x) likewise along N and C: [N, C, 1, ..]
//   channel_groups(g, x)           x[N, C, ...] seen as [N, groups, ...], the channels of a group together
//   all_but_first(d, x, 2)         the dimensions d are all of x but the first two
//   repeated_heads(r, e, u, k)     r is k[.., H, L, D] with each head several times in a row, by way of
//                                  u[.., H, 1, L, D] and e[.., H, n, L, D]
//   some_kept(m)                   of a constant mask with data: no row along the last dimension is all false, or -inf
//   causal(m)                      of a constant mask with data: row i keeps the keys up to i
//   fits(c, x)                     a constant with data whose elements x's dtype holds
//
// A condition on a value or an attribute that the match did not meet (another alternative did) holds.
#pragma once

#include <string>

#include "transforms/patterns/pattern.h"

namespace fusec {

// What is wrong with a condition, and with which of its arguments (none: with the whole of it).
struct ConditionFault {
  std::string what;
  std::optional<std::size_t> argument;
  std::string expected;
  bool wants_name = false;  // of the match
};
std::optional<ConditionFault> wrong_in_condition(const PatternCondition& condition);
std::vector<std::string_view> condition_names();

// "" where it holds, else why not.
std::string unmet(const PatternCondition& condition, const PatternCheckContext& context);

// Does the condition ask about nodes further back without telling of them (PatternCheckContext::look_at)?
bool looks_unseen(const PatternCondition& condition);

}  // namespace fusec
