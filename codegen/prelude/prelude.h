// The device functions that emitted kernels call, as text. They are .cu files in codegen/prelude, embedded by the build
// and divided into parts: "//@ part NAME : NEEDED NEEDED". The parts of codegen/prelude/warpgroup_multiplies are
// generated. An emitted file contains the parts that it uses and those that they need.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>

namespace fusec {

std::span<const std::string_view> prelude_files();

// The text of these parts and of everything they need, in a fixed order. Throws InternalError for an unknown part.
std::string prelude_text(const std::set<std::string>& parts);

// The functions and types that prelude_files() define, sorted.
std::span<const std::string_view> names_of_prelude_files();
// Whether a part defines a function or type of this name, which a kernel's name must not hide.
bool is_prelude_name(std::string_view name);

}  // namespace fusec
