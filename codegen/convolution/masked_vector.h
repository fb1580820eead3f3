// Emits neighbouring elements of an expression whose loads are guarded, such as pixels that are 0 beyond an image's
// border: one vector access for each load, then a select for each element.
//
//   inside ? x[row + column + e] : 0   of four e   const bool inside = ...;
//                                                  const Words<4> x_w = inside ? load_words<4>(x + ...) : Words<4>{};
//                                                  for (int e = 0; e < 4; ++e) four[e] = element<32>(x_w, e);
#pragma once

#include <functional>
#include <string>

#include "codegen/expr/emit_expr.h"
#include "schedule/convolution/windows.h"

namespace fusec {

// The value's axes are bound to the first neighbour, and `bind` binds them to another. Loads that move along the window
// are vectors, and masks are the same for all neighbours. Returns the name of an aligned array of the `width` values.
std::string emit_masked_vector(ExprEmitter& emitter, ExprId value, int width, const StencilAxis& along,
                               const std::function<void(const std::string& neighbour)>& bind);

}  // namespace fusec
