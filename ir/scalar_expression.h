// The expression that an elementwise or broadcasting custom op may carry in attrs.expr: its value at one index of the
// output, written with the operands $0, $1, ... at that index.
//
//   {"op": "my.gate", "pattern": "elemwise", "attrs": {"expr": "$0 * sigmoid(1.702 * $0) + max($1, 0)"}}
//
//   or      = and { "||" and }                 and   = compare { "&&" compare }
//   compare = sum [ ("<"|"<="|">"|">="|"=="|"!=") sum ]
//   sum     = product { ("+"|"-") product }    product = unary { ("*"|"/"|"%") unary }
//   unary   = ("-"|"!") unary | number | "$" digits | "true" | "false" | "inf" | "nan" | "(" or ")"
//           | function "(" or { "," or } ")"
//
// Functions: abs sign exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal sin cos tan asin acos atan sinh cosh
// tanh asinh acosh atanh erf sigmoid floor ceil round trunc isnan isinf relu square; min max pow fmod atan2;
// select(condition, then, otherwise), clamp(x, low, high).
//
// Operands are in their compute types (16-bit and 8-bit floats in float32), different types meet in the wider one, `/`
// and the float functions turn integers into floats, `%` has the divisor's sign. The result is converted to the
// declared dtype.
#pragma once

#include <string>
#include <string_view>

#include "ir/formula.h"
#include "ir/op.h"

namespace fusec {

// The one result's value at `index`, in its dtype: what a row's formula is. Throws OpError at attrs/expr.
ExprId expression_value(std::string_view text, Formula& f, Formula::Index index);

// Throws OpError where the expression does not fit the call: its text, what its operands broadcast to, the number of
// results that `declared` holds.
void check_expression(std::string_view text, const OpCall& call);

// The row of a custom op whose nodes carry attrs.expr: one declared result to which all operands broadcast.
OpDef expression_row(std::string op_name);

// Nodes of one op may carry an expression or not, so the op can have two rows in a graph: Graph::op(expression_key(op))
// is the one with the formula. The key begins with a byte that no name in UTF-8 has.
std::string expression_key(std::string_view op_name);
bool is_expression_key(std::string_view key);
std::string op_of_expression_key(std::string_view key);

}  // namespace fusec
