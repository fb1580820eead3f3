// The host part of an emitted file, compiled by a plain C++ compiler against the stand-in of the CUDA runtime and
// loaded.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codegen/launch/launch_plan.h"
#include "ir/graph.h"

namespace fusec {

class SharedLibrary {
 public:
  explicit SharedLibrary(const std::string& path);  // throws Error(kEnvironment) where it cannot be loaded
  ~SharedLibrary();
  SharedLibrary(const SharedLibrary&) = delete;
  SharedLibrary& operator=(const SharedLibrary&) = delete;

  // Throws Error(kEnvironment) where there is none.
  void* symbol(const std::string& name) const;

 private:
  void* handle_ = nullptr;
};

// `out_cu` is the whole emitted file. Its kernels become empty functions, the launchers of its custom ops functions
// that record. `compiler` is a program that takes GCC's options; "" takes $CXX, else c++, g++ or clang++. Throws
// Error(kEnvironment) with the compiler's words where it refuses the file.
std::unique_ptr<SharedLibrary> compile_host(const std::string& out_cu, const Graph& graph, const LaunchPlan& plan,
                                            const std::string& compiler);

}  // namespace fusec
