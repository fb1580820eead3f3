// NVRTC, loaded at run time: CUDA source in, PTX and cubin out. Nothing of CUDA is needed to build or to emit source.
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
  // From the places of codegen/nvrtc/nvrtc_search_paths; `chosen` is the path that the embedding program gives, "" for
  // none. Null where there is no library; `why` then says what was tried.
  static std::shared_ptr<const Nvrtc> load(std::string* why = nullptr, const std::string& chosen = "");
  // The same; throws Error(kEnvironment) where there is none.
  static std::shared_ptr<const Nvrtc> require(const std::string& chosen = "");
  ~Nvrtc();
  Nvrtc(const Nvrtc&) = delete;
  Nvrtc& operator=(const Nvrtc&) = delete;

  NvrtcVersion version() const { return version_; }
  const std::string& path() const { return path_; }
  // Tells this library from every other: its version, file, size and time of change.
  const std::string& identity() const { return identity_; }
  std::vector<int> supported_architectures() const;  // 80, 90, 100, ...

  // `arch` as "sm_90a". Throws Error(kEnvironment) with the compiler's log, whose lines count from the start of
  // `source`. Thread-safe, but for the time of the call NVRTC replaces the process's handlers of SIGINT and SIGTERM,
  // and it aborts where memory runs out: what users reach goes through codegen/nvrtc/nvrtc_process.
  CompiledModule compile(const std::string& source, const std::string& name, const std::string& arch,
                         CubinUse cubin = CubinUse::kRun) const;

 private:
  struct Functions;
  Nvrtc();
  // Why the library cannot be used; "" where it can.
  std::string open(const std::string& path);
  void* library_ = nullptr;
  std::string path_, identity_;
  NvrtcVersion version_;
  std::unique_ptr<Functions> functions_;
};

}  // namespace fusec
