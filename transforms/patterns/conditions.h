// Conditions of a pattern on the values and attributes that it matched (the clause `where`):
//
//   dtype(x, float16, bfloat16)    the dtype of x is one of these
//   never_nan(x)                   the dtype of x is no float
//   rank(x, 2), min_rank(x, 2)     x has 2 dimensions; at least 2
//   extent(x, -1, 128)             the extent of that dimension is the constant 128
//   same_extent(x, -1, y, 0)       two dimensions have equal extents
//   same_shape(a, b), same_dtype(a, b), same_type(a, b)
//   same_size(a, b), same_rows(a, b)  equal numbers of elements; equal numbers of rows (elements / last extent)
//   made_by(x, clamp, relu)        one of these ops makes x
//   quantized(x)                   the dtype of x is no float of 16 bits or more, or a quantized op makes x, with views
//                                  and casts in between
//   number(s), tensor(x)           a number operand or a constant with one value; not a number operand
//   greater(s, 0), less(s, 1)      a comparison of a number or an attribute
//   constant(x), data(x)           a constant of the model; a constant with data in the model
//   made_of_constants(x)           x is a constant or depends on constants only, so M_prepare can compute it
//   vector(b, x)                   b varies along the last dimension of x only
//   last_dim(d, x), last_dims(d, x)  the attribute names the last dimension of x; the last dimensions of x
//   opposite(a, b)                 a = -b, for numbers
//   equals(a, 1, 1.702)            the attribute or number is one of these: integers exactly, other numbers to a
//                                  millionth, or as rounded to the constant's dtype
//   distinct(a, b)                 a and b are not the same value
//   independent(a, b)              distinct, and neither is made of the other by a few elementwise nodes
//   given(x)                       a constant or an input of the model, or a cast of one
//   widened(a, b)                  a has b's dtype, or a wider float dtype
//   no_narrower(a, b)              the elements of a have at least as many bits as those of b, or b is given
//   count(n, x, d), per_count(n, x, d)
//                                  the number n is the count of elements of x along the dimensions d; 1 / count
//   along_channels(v, x)           v varies along C of x[N, C, ...] only: [C, 1, ..] or [1, C, 1, ..]
//   along_batch_and_channels(v, x) v varies along N and C of x[N, C, ...] only: [N, C, 1, ..]
//   channel_groups(g, x)           g is x[N, C, ...] as [N, groups, ...], with a whole number of channels in each group
//   all_but_first(d, x, 2)         the dimensions d are all dimensions of x but the first two
//   repeated_heads(r, e, u, k)     r is k[.., H, L, D] with each head repeated, by way of u[.., H, 1, L, D] and
//                                  e[.., H, n, L, D]
//   some_kept(m)                   constant mask with data: no row along the last dimension is all false, or all -inf
//   causal(m)                      constant mask with data: row i keeps exactly the keys 0 .. i
//   fits(c, x)                     constant with data whose elements the dtype of x holds exactly
//
// A condition on a name that the match did not bind (another alternative matched) holds.
#pragma once

#include <string>

#include "transforms/patterns/pattern.h"

namespace fusec {

// An error in the text of a condition.
struct ConditionFault {
  std::string what;
  std::optional<std::size_t> argument;  // the faulty argument, nothing if the whole condition is wrong
  std::string expected;
  bool wants_name = false;  // the argument must be a name of the match
};
std::optional<ConditionFault> wrong_in_condition(const PatternCondition& condition);
const std::vector<std::string_view>& condition_names();

// Why the condition does not hold; "" if it does.
std::string unmet(const PatternCondition& condition, const PatternCheckContext& context);

// Whether the condition examines nodes without reporting them to PatternCheckContext::look_at.
bool looks_unseen(const PatternCondition& condition);

}  // namespace fusec
