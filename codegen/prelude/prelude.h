// The device functions that emitted kernels call, as text. They are .cu files in codegen/prelude, embedded by the build
// and divided into parts: "//@ part NAME : NEEDED NEEDED". The parts of codegen/prelude/warpgroup_multiplies are
// generated. An emitted file contains the parts that it uses and those that they need.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fusec {

std::span<const std::string_view> prelude_files();

// The text of these parts and of everything they need, in a fixed order. Throws InternalError for an unknown part.
std::string prelude_text(const std::set<std::string>& parts);

// All functions and types that the parts define, sorted. A kernel's name must not hide one of them.
std::vector<std::string_view> prelude_names();

}  // namespace fusec
