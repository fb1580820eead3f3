// NVRTC, loaded at run time: CUDA source in, PTX and cubin out. Nothing of CUDA is needed to build or to emit source.
//
// The library is looked for in: $FUSEC_NVRTC (a file), the project's .deps/nvrtc/lib (above the program's folder or the
// working directory), $CUDA_HOME, $CUDA_PATH, /usr/local/cuda, and the loader's path; CUDA 13 before 12.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace fusec {

struct NvrtcVersion {
  int major = 0, minor = 0;
};

struct CompiledModule {
  std::string ptx;
  std::string cubin;
  std::string log;  // warnings
};

// What the cubin is for. Where it only proves that ptxas takes the PTX, which is the same for both, it is assembled
// with little optimization: of a product's kernel in a fifth of the time.
enum class CubinUse : std::uint8_t { kRun, kProof };

class Nvrtc {
 public:
  // Null where there is no library; `why` then says where it was looked for.
  static std::shared_ptr<const Nvrtc> load(std::string* why = nullptr);
  ~Nvrtc();
  Nvrtc(const Nvrtc&) = delete;
  Nvrtc& operator=(const Nvrtc&) = delete;

  NvrtcVersion version() const { return version_; }
  const std::string& path() const { return path_; }
  std::vector<int> supported_architectures() const;  // 80, 90, 100, ...

  // `arch` as "sm_90a". Throws Error(kEnvironment) with the compiler's log, whose lines count from the start of
  // `source`. Thread-safe.
  CompiledModule compile(const std::string& source, const std::string& name, const std::string& arch,
                         CubinUse cubin = CubinUse::kRun) const;

 private:
  struct Functions;
  Nvrtc();
  void* library_ = nullptr;
  std::string path_;
  NvrtcVersion version_;
  std::unique_ptr<Functions> functions_;
};

struct CompileOptions {
  int jobs = 0;                 // 0: as many as there are processors
  std::string cache_directory;  // "" for none
  CubinUse cubin = CubinUse::kRun;
};

// Compiles each source, in parallel, each distinct one once, with results kept in the cache directory by content.
// Results in order. The error thrown is that of the first source that fails.
std::vector<CompiledModule> compile_all(const Nvrtc& nvrtc, const std::vector<std::string>& sources,
                                        const std::string& arch, const CompileOptions& options);

// $XDG_CACHE_HOME/fusec, else ~/.cache/fusec, else "".
std::string default_cache_directory();

}  // namespace fusec
