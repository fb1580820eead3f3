// All sources of a model through NVRTC: in parallel, each in a child process, each distinct one once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "codegen/nvrtc/compile_cache.h"
#include "codegen/nvrtc/nvrtc.h"

namespace fusec {

struct CompileOptions {
  int jobs = 0;                 // 0: as many as there are processors
  std::string cache_directory;  // "" for none
  CubinUse cubin = CubinUse::kRun;
  std::uint64_t cache_bytes = 512 << 20;  // how large the cache may become
  // Called after each source, from the thread that compiled it, one call at a time. What it throws is an error of all.
  std::function<void(std::size_t done, std::size_t total)> progress = nullptr;
};

// Compiles each source, with results kept in the cache directory by content. Results in order. The error thrown is that
// of the first source that fails, or that of a cache directory which others can write to.
std::vector<CompiledModule> compile_all(const Nvrtc& nvrtc, const std::vector<std::string>& sources,
                                        const std::string& arch, const CompileOptions& options);

}  // namespace fusec
