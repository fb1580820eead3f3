// Compiled kernels as NVRTC gives them.
#pragma once

#include <memory>
#include <string>

namespace fusec {

// Several kernels of one model. Either part may be null: a GPU takes both, the emulator PTX alone.
struct KernelImage {
  std::shared_ptr<const std::string> ptx, cubin;
};

}  // namespace fusec
