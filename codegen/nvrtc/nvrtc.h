// NVRTC, loaded at run time: CUDA source in, PTX and cubin out. Neither the build nor source emission needs CUDA.
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
  std::string log;      // compiler warnings
  bool cached = false;  // from the compile cache
};

// The purpose of the cubin. kProof only proves that ptxas accepts the PTX: ptxas runs with little optimization, which
// is several times faster for a GEMM. The PTX is the same for both.
enum class CubinUse : std::uint8_t { kRun, kProof };

class Nvrtc {
 public:
  // Loads from the paths of codegen/nvrtc/nvrtc_search_paths. `chosen` is the path given by the embedding program, ""
  // for none. Returns null if no library was found; `why` then lists what was tried.
  static std::shared_ptr<const Nvrtc> load(std::string* why = nullptr, const std::string& chosen = "");
  // Loads the library or throws Error(kEnvironment).
  static std::shared_ptr<const Nvrtc> require(const std::string& chosen = "");
  ~Nvrtc();
  Nvrtc(const Nvrtc&) = delete;
  Nvrtc& operator=(const Nvrtc&) = delete;

  NvrtcVersion version() const { return version_; }
  const std::string& path() const { return path_; }
  // Identifies this library file: version, path, size and modification time.
  const std::string& identity() const { return identity_; }
  std::vector<int> supported_architectures() const;  // 80, 90, 100, ...

  // `arch` is, for example, "sm_90a". Throws Error(kEnvironment) with the compiler's log; its line numbers count from
  // the start of `source`. Thread-safe. During the call NVRTC replaces the process's SIGINT and SIGTERM handlers, and
  // it aborts if memory runs out. User-facing code therefore uses codegen/nvrtc/nvrtc_process.
  CompiledModule compile(const std::string& source, const std::string& name, const std::string& arch,
                         CubinUse cubin = CubinUse::kRun) const;

 private:
  struct Functions;
  Nvrtc();
  // Returns why the library cannot be used; "" if it can.
  std::string open(const std::string& path);
  void* library_ = nullptr;
  std::string path_, identity_;
  NvrtcVersion version_;
  std::unique_ptr<Functions> functions_;
};

}  // namespace fusec
