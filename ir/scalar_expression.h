// The expression of an elementwise or broadcasting custom op, given in attrs.expr: the value at one index of the output
// in terms of the operands $0, $1, ... at that index.
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
// Operands have their compute types (16-bit and 8-bit floats are float32). Operands of different types are converted to
// the wider one. `/` and the float functions convert integers to floats; `%` has the divisor's sign. The result is
// converted to the declared dtype.
#pragma once

#include <string>
#include <string_view>

#include "ir/formula.h"
#include "ir/op.h"

namespace fusec {

// The value of the only result at `index`, in its dtype: the formula of such an op. Throws OpError at attrs/expr.
ExprId expression_value(std::string_view text, Formula& f, Formula::Index index);

// Throws OpError if the expression does not parse, if the operands do not broadcast to the declared result, or if
// `declared` does not hold exactly one type.
void check_expression(std::string_view text, const OpCall& call);

// The row of a custom op whose nodes carry attrs.expr: one declared result to which all operands broadcast.
OpDef expression_row(std::string op_name);

// Some nodes of a custom op may carry an expression and others not, so the op can have two rows in a graph:
// Graph::op(expression_key(op)) is the one with the formula. The key begins with a byte that no UTF-8 name contains.
std::string expression_key(std::string_view op_name);
bool is_expression_key(std::string_view key);
std::string op_of_expression_key(std::string_view key);

}  // namespace fusec
