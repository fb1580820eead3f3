// A value that is made of constants with data alone, as a constant: what a rewrite that folds a scale into weights puts
// in their place. Weights that come at run time are not known, and nothing is computed of them.
//
//   constant w: float32[8, 4] = [...]
//   a = mul(w, 0.5)                        ->     constant a: float32[8, 4] = [...]
#pragma once

#include <string>

#include "ir/graph.h"

namespace fusec {

// kNone where it is not known, or where computing it would take long.
ValueId known_value(Graph& graph, ValueId v, std::string name);

}  // namespace fusec
