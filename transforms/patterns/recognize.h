// Recognition: applies the rewriting patterns until none matches, so that ops which a front end decomposed become
// composite ops again.
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
#include "transforms/patterns/pattern_list.h"

namespace fusec {

// Ignores patterns that become a group or a library call. Returns the names of the patterns that replaced something.
// Throws Error(kInput) with the pattern's name if the replacements add more nodes than the limit pattern-growth allows.
std::vector<std::string> recognize_patterns(CanonicalGraph& canonical, const PatternList& patterns,
                                            const Limits& limits = {});

}  // namespace fusec
