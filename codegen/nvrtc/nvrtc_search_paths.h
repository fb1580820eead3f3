// Where NVRTC is looked for. Loading a library executes it, so nothing here depends on the working directory.
//
//   1. $FUSEC_NVRTC, alone where it is set
//   2. the path that the embedding program gives (Options::nvrtc_library), alone where it is given
//   3. PREFIX/lib/fusec, where PREFIX/bin has the running program, PREFIX/lib has libfusec.so, or PREFIX is the install
//      prefix: `cmake --install` copies NVRTC there, and a build folder links it to the source tree's .deps/nvrtc/lib
//   4. the CUDA toolkit: $CUDA_HOME, $CUDA_PATH, /usr/local/cuda
//   5. the loader's path; in each place CUDA 13 before 12
#pragma once

#include <string>
#include <vector>

namespace fusec {

struct NvrtcSearchPaths {
  std::vector<std::string> paths;  // absolute paths, and names for the loader's path
  std::string chosen_by;           // who gave the one path: "FUSEC_NVRTC"; "" where none was given
  std::string refused;             // why the given path is not even tried; "" where it is
};

// `chosen` is what the embedding program gives; "" for nothing.
NvrtcSearchPaths nvrtc_search_paths(const std::string& chosen);

}  // namespace fusec
