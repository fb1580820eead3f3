// The boundary of the public library: checks that text arguments are UTF-8, and turns internal exceptions into
// fusec::Error.
#pragma once

#include <string>
#include <string_view>

#include "fusec/error.h"
#include "ir/budget.h"
#include "ir/op.h"

namespace fusec {

// Returns the text. Throws Error(kUsage) if it is not UTF-8; `what` names it in the message.
const std::string& require_utf8(const std::string& text, const std::string& what);

// The error of a type rule or formula, as an error without a place in a file.
Error error_of(const OpError& error);

// Adds line and column to an error that names an element of this JSON text. Readers give the element's pointer alone:
// the programs resolve it when they print, and the library resolves it here, before the error reaches a caller.
Error with_place(const Error& error, std::string_view json);

// Runs the body of a public function. Turns an OpError, which the reader of model files would catch, into an Error.
template <class F>
auto at_boundary(const F& function) {
  try {
    return function();
  } catch (const OpError& error) {
    throw error_of(error);
  }
}

// Runs the body of a public function within resource limits.
template <class F>
auto at_boundary(const ResourceLimits& limits, const F& function) {
  Budget budget(limits);
  const BudgetScope scope(&budget);
  return at_boundary(function);
}

}  // namespace fusec
