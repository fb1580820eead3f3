// Splits a linear number into coordinates along the axes of a convolution window
// (schedule/convolution/grouped_implicit_gemm.h), the last axis fastest.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/expr/kernel_writer.h"
#include "schedule/convolution/grouped_implicit_gemm.h"

namespace fusec {

// "(a + b)", or one of them if the other is "0".
std::string sum_of(const std::string& a, const std::string& b);

// Emits a variable per axis with its coordinate of the unsigned `number`. `of` gives an axis' extent and `text` prints
// it. Letters of `wishes` name the variables. The first axis takes the remaining quotient. The coordinate of an axis
// with extent 1 is "0".
std::vector<std::string> delinearize(KernelWriter& writer, const std::vector<ImplicitGemmAxis>& axes,
                                     const std::string& number, std::string_view wishes,
                                     const std::function<IndexExpr(const ImplicitGemmAxis&)>& of,
                                     const std::function<std::string(const IndexExpr&)>& text);

}  // namespace fusec
