// The boundary of the library: what comes in as text is UTF-8, and what goes out as an exception is a fusec::Error.
#pragma once

#include <string>
#include <string_view>

#include "fusec/error.h"
#include "ir/budget.h"
#include "ir/op.h"

namespace fusec {

// The text, or Error(kUsage) where it is not UTF-8; `what` names it in the message.
const std::string& require_utf8(const std::string& text, const std::string& what);

// What a type rule or formula refuses, in the terms of a caller who has no file before him.
Error error_of(const OpError& error);

// With line and column, where the error names an element of this JSON text and not yet its place. The readers name the
// element alone: the programs look for its place when they print it, the library's callers have no other chance.
Error with_place(const Error& error, std::string_view json);

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
