// Evaluates a value that depends only on constants with data, for rewrites that fold a scale into weights. Weights that
// come at run time have no known value.
//
//   constant w: float32[8, 4] = [...]
//   a = mul(w, 0.5)                        ->     constant a: float32[8, 4] = [...]
#pragma once

#include <string>

#include "ir/graph.h"

namespace fusec {

// Adds the value as a constant of that name and returns it; returns v if it is a constant with data already. Returns
// kNone if the value is not known or takes too long to compute.
ValueId known_value(Graph& graph, ValueId v, std::string name);

}  // namespace fusec
