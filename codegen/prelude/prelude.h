// The device functions that emitted kernels call, as text. They are real .cu files (codegen/prelude/), embedded by the
// build, in parts: "//@ part NAME : NEEDED NEEDED", but for those of codegen/prelude/warpgroup_multiplies. A file of
// kernels holds the parts it uses and what those need.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fusec {

std::span<const std::string_view> prelude_files();

// The text of these parts and of all that they need, in a fixed order. An unknown part is an InternalError.
std::string prelude_text(const std::set<std::string>& parts);

// Every function and type that some part defines: no name of a kernel may hide one.
const std::set<std::string, std::less<>>& prelude_names();

}  // namespace fusec
