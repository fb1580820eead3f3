// The places of a number along the axes of windows (schedule/convolution/grouped_implicit_gemm.h): digits, the last
// axis' first.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/expr/kernel_writer.h"
#include "schedule/convolution/grouped_implicit_gemm.h"

namespace fusec {

// "(a + b)", or one of them where the other is "0".
std::string sum_of(const std::string& a, const std::string& b);

// Of an unsigned number, how many of it there are along an axis as `of` says, which `text` prints: each a variable
// named by a letter of `wishes`, but the first axis', which takes what is left; "0" where there is but one.
std::vector<std::string> delinearize(KernelWriter& writer, const std::vector<ImplicitGemmAxis>& axes,
                                     const std::string& number, std::string_view wishes,
                                     const std::function<IndexExpr(const ImplicitGemmAxis&)>& of,
                                     const std::function<std::string(const IndexExpr&)>& text);

}  // namespace fusec
