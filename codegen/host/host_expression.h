// Index expressions as C++ text of the host part: 64-bit integers, symbols by the names given.
#pragma once

#include <functional>
#include <string>

#include "ir/index_expr.h"

namespace fusec {

// Uses the functions floor_div, floor_mod, least and greatest, which the host part defines in its anonymous namespace.
std::string host_expression(const IndexExpr& e, const std::function<std::string(Variable)>& name_of);

}  // namespace fusec
