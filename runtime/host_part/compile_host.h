// Compiles the host part of an emitted file with a plain C++ compiler against a stand-in for the CUDA runtime, and
// loads it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codegen/launch/launch_plan.h"
#include "ir/graph.h"

namespace fusec {

class SharedLibrary {
 public:
  explicit SharedLibrary(const std::string& path);  // throws Error(kEnvironment) if it cannot be loaded
  ~SharedLibrary();
  SharedLibrary(const SharedLibrary&) = delete;
  SharedLibrary& operator=(const SharedLibrary&) = delete;

  // Throws Error(kEnvironment) if there is no such symbol.
  void* symbol(const std::string& name) const;

 private:
  void* handle_ = nullptr;
};

// `out_cu` is the whole emitted file. Kernels become empty functions; launchers of custom ops become functions that
// record the call. `compiler` is a program that takes GCC's options; "" takes $CXX, else c++, g++ or clang++. Throws
// Error(kEnvironment) with the compiler's output if it rejects the file.
std::unique_ptr<SharedLibrary> compile_host(const std::string& out_cu, const Graph& graph, const LaunchPlan& plan,
                                            const std::string& compiler);

}  // namespace fusec
