// The places of a number along the axes of windows (analysis/group_windows.h): digits, the last axis' first.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/group_windows.h"
#include "codegen/kernel_writer.h"

namespace fusec {

// "(a + b)", or one of them where the other is "0".
std::string sum_of(const std::string& a, const std::string& b);

// Of an unsigned number, how many of it there are along an axis as `of` says, which `text` prints: each a variable
// named by a letter of `wishes`, but the first axis', which takes what is left; "0" where there is but one.
std::vector<std::string> axis_digits(KernelWriter& writer, const std::vector<WindowedAxis>& axes,
                                     const std::string& number, std::string_view wishes,
                                     const std::function<IndexExpr(const WindowedAxis&)>& of,
                                     const std::function<std::string(const IndexExpr&)>& text);

}  // namespace fusec
