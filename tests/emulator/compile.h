// Compiles a file of tests/emulator/kernels with nvcc, once for all tests that use it.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/emulator/emulator.h"

namespace fusec::emulator::testing {

// Null, with a message, where there is no nvcc.
const Module* compiled_module(const char* source, const char* arch);

// tests/emulator/kernels/SOURCE with kernels/emulated_runtime.cu, host side and all, for compute capability `arch`.
struct CompiledLibrary {
  CompiledLibrary(std::string folder, std::string library, std::string ptx_text)
      : path(std::move(library)), ptx(std::move(ptx_text)), folder_(std::move(folder)) {}
  CompiledLibrary(CompiledLibrary&& other) noexcept
      : path(std::move(other.path)), ptx(std::move(other.ptx)), folder_(std::exchange(other.folder_, {})) {}
  ~CompiledLibrary();

  std::string path;  // of the shared object
  std::string ptx;   // of its kernels

 private:
  std::string folder_;  // removed with the object
};
// None, with a message, where nvcc is missing.
std::optional<CompiledLibrary> compile_library(const char* source, const char* arch);
// Files anywhere, with kernels/emulated_runtime.cu; the PTX is that of the first. They include what lies in `includes`.
std::optional<CompiledLibrary> compile_library(const std::vector<std::string>& files, const std::string& includes,
                                               const char* arch);

}  // namespace fusec::emulator::testing
