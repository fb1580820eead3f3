// The boundary of the library: what comes in as text is UTF-8, and what goes out as an exception is a fusec::Error.
#pragma once

#include <string>

#include "fusec/error.h"
#include "ir/budget.h"
#include "ir/op.h"

namespace fusec {

// The text, or Error(kUsage) where it is not UTF-8; `what` names it in the message.
const std::string& require_utf8(const std::string& text, const std::string& what);

// What a type rule or formula refuses, in the terms of a caller who has no file before him.
Error error_of(const OpError& error);

// Runs what a public function does. Type rules and formulas throw OpError where the reader of a model catches it; none
// of theirs gets past here.
template <class F>
auto at_boundary(const F& function) {
  try {
    return function();
  } catch (const OpError& error) {
    throw error_of(error);
  }
}

// The same within limits.
template <class F>
auto at_boundary(const ResourceLimits& limits, const F& function) {
  Budget budget(limits);
  const BudgetScope scope(&budget);
  return at_boundary(function);
}

}  // namespace fusec
