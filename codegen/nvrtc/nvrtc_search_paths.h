// Search paths for NVRTC. Loading a library executes it, so nothing here depends on the working directory.
//
//   1. $FUSEC_NVRTC; if set, nothing else is tried
//   2. the path given by the embedding program (Options::nvrtc_library); if given, nothing else is tried
//   3. PREFIX/lib/fusec, where PREFIX/bin has the running program, PREFIX/lib has libfusec.so, or PREFIX is the install
//      prefix: `cmake --install` copies NVRTC there, and a build folder links it to the source tree's .deps/nvrtc/lib
//   4. the CUDA toolkit: $CUDA_HOME, $CUDA_PATH, /usr/local/cuda
//   5. the loader's path
//
// In each place CUDA 13 is tried before CUDA 12.
#pragma once

#include <string>
#include <vector>

namespace fusec {

struct NvrtcSearchPaths {
  std::vector<std::string> paths;  // absolute paths, or names for the loader's path
  std::string chosen_by;           // who chose the single path: "FUSEC_NVRTC"; "" if nobody did
  std::string refused;             // why the chosen path is not tried; "" if it is
};

// `chosen` is the path given by the embedding program; "" for none.
NvrtcSearchPaths nvrtc_search_paths(const std::string& chosen);

}  // namespace fusec
