// Recognition: what a decomposing front end wrote as primitive ops becomes the composite op again, by the rewriting
// patterns, until nothing more matches.
//
//   m = amax(x, dim=1, keepdim=true)      y = softmax(x, dim=1)
//   s = sub(x, m)
//   e = exp(s)                        ->
//   t = sum(e, dim=1, keepdim=true)
//   y = div(e, t)
#pragma once

#include <string>
#include <vector>

#include "ir/limits.h"
#include "transforms/canonical_graph.h"
#include "transforms/patterns/pattern.h"

namespace fusec {

// Patterns that become something else than another expression are left alone. Returns the names of those that replaced
// something. Throws Error(kInput), which names the pattern, where what the replacements make exceeds the limit
// pattern-growth.
std::vector<std::string> recognize_patterns(CanonicalGraph& canonical, const PatternList& patterns, const Limits& limits = {});

}  // namespace fusec
