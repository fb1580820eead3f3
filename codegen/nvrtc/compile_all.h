// Compiles all sources of a model with NVRTC: in parallel, in child processes, and each distinct source once.
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
  int jobs = 0;                 // 0: one per processor
  std::string cache_directory;  // "": no cache
  CubinUse cubin = CubinUse::kRun;
  std::uint64_t cache_bytes = 512 << 20;  // size limit of the cache
  // Called after each source, from the thread that compiled it, one call at a time. An exception from it aborts the
  // whole compilation.
  std::function<void(std::size_t done, std::size_t total)> progress = nullptr;
};

// Compiles each source and caches the results by content. Returns the results in order. Throws the error of the first
// source that fails, or an error if others can write to the cache directory.
std::vector<CompiledModule> compile_all(const Nvrtc& nvrtc, const std::vector<std::string>& sources,
                                        const std::string& arch, const CompileOptions& options);

}  // namespace fusec
