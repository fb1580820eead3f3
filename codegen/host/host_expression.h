// Prints index expressions as C++ text of the host part: 64-bit integers, with symbols by the given names.
#pragma once

#include <functional>
#include <string>

#include "ir/index_expr.h"

namespace fusec {

// The text calls floor_div, floor_mod, least and greatest, which the host part defines in its anonymous namespace.
std::string host_expression(const IndexExpr& e, const std::function<std::string(Variable)>& name_of);

}  // namespace fusec
