#include "codegen/nvrtc/nvrtc.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <filesystem>

#include "codegen/nvrtc/nvrtc_search_paths.h"
#include "ir/error.h"

namespace fusec {
namespace {

namespace fs = std::filesystem;
using NvrtcProgram = void*;

}  // namespace

struct Nvrtc::Functions {
  int (*version)(int*, int*);
  int (*architecture_count)(int*);
  int (*architectures)(int*);
  int (*create)(NvrtcProgram*, const char*, const char*, int, const char* const*, const char* const*);
  int (*compile)(NvrtcProgram, int, const char* const*);
  int (*destroy)(NvrtcProgram*);
  int (*log_size)(NvrtcProgram, std::size_t*);
  int (*log)(NvrtcProgram, char*);
  int (*ptx_size)(NvrtcProgram, std::size_t*);
  int (*ptx)(NvrtcProgram, char*);
  int (*cubin_size)(NvrtcProgram, std::size_t*);
  int (*cubin)(NvrtcProgram, char*);
};

Nvrtc::Nvrtc() = default;

Nvrtc::~Nvrtc() {
  // The library stays loaded: its threads and state do not survive unloading.
}

namespace {

// NVRTC opens libnvrtc-builtins by its bare name on first use, and the loader searches only its own path. Loading it
// first, from NVRTC's folder, makes the bare name resolve.
void load_builtins_beside(const std::string& library) {
  if (library.find('/') == std::string::npos) return;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(library).parent_path(), ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("libnvrtc-builtins.so.", 0) == 0) dlopen(entry.path().c_str(), RTLD_NOW | RTLD_LOCAL);
  }
}

// Whether the library is loaded already, or the address space (ulimit -v) has room for its file and 32 MiB more. The
// library's initialization ends the process where it finds no memory; it and libnvrtc-builtins take less than that.
bool has_room_for(const std::string& path) {
  constexpr std::size_t kBesideFile = std::size_t{32} << 20;
  if (void* const loaded = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD)) return dlclose(loaded) == 0;
  std::error_code unknown;
  const std::uintmax_t bytes = fs::file_size(path, unknown);
  if (unknown) return true;  // a name in the loader's path
  void* const room = mmap(nullptr, bytes + kBesideFile, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return room != MAP_FAILED && munmap(room, bytes + kBesideFile) == 0;
}

// The file from which a symbol was loaded: path, size and modification time.
std::string file_of(void* symbol) {
  Dl_info info{};
  struct stat file {};
  if (dladdr(symbol, &info) == 0 || !info.dli_fname || stat(info.dli_fname, &file) != 0) return "";
  return fmt::format("{} {} {}.{}", info.dli_fname, file.st_size, file.st_mtim.tv_sec, file.st_mtim.tv_nsec);
}

}  // namespace

std::shared_ptr<const Nvrtc> Nvrtc::load(std::string* why, const std::string& chosen) {
  const NvrtcSearchPaths places = nvrtc_search_paths(chosen);
  std::string tried;
  std::error_code unknown;
  for (const std::string& path : places.paths) {
    if (!places.refused.empty()) continue;
    if (places.chosen_by.empty() && path.front() == '/' && !fs::exists(path, unknown)) continue;
    if (!has_room_for(path)) {
      if (why) *why = path + " cannot be loaded: the address space is limited (ulimit -v) to less than it takes";
      return nullptr;
    }
    auto nvrtc = std::shared_ptr<Nvrtc>(new Nvrtc);
    const std::string reason = nvrtc->open(path);
    if (reason.empty()) return nvrtc;
    tried += (tried.empty() ? "" : "; ") + reason;
  }
  if (!why) return nullptr;
  if (!places.chosen_by.empty())
    *why = fmt::format(
        "{} names no NVRTC: found \"{}\" ({}), expected the absolute path of a libnvrtc.so of CUDA 12 or "
        "13, or its name in the loader's path",
        places.chosen_by, places.paths.front(), places.refused.empty() ? tried : places.refused);
  else
    *why =
        "no libnvrtc found: set FUSEC_NVRTC to one, install a CUDA toolkit, or run scripts/setup.sh, which unpacks "
        "the wheel nvidia-cuda-nvrtc (tried " +
        tried + ")";
  return nullptr;
}

std::shared_ptr<const Nvrtc> Nvrtc::require(const std::string& chosen) {
  std::string why;
  auto nvrtc = load(&why, chosen);
  if (!nvrtc) throw Error(ErrorKind::kEnvironment, why);
  return nvrtc;
}

std::string Nvrtc::open(const std::string& path) {
  library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library_) {
    const char* const reason = dlerror();
    return reason ? reason : path;
  }
  load_builtins_beside(path);
  functions_ = std::make_unique<Functions>();
  Functions& f = *functions_;
  std::string missing;
  auto bind = [&](auto& function, const char* symbol) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library_, symbol));
    if (!function) missing = symbol;
  };
  bind(f.version, "nvrtcVersion");
  bind(f.architecture_count, "nvrtcGetNumSupportedArchs");
  bind(f.architectures, "nvrtcGetSupportedArchs");
  bind(f.create, "nvrtcCreateProgram");
  bind(f.compile, "nvrtcCompileProgram");
  bind(f.destroy, "nvrtcDestroyProgram");
  bind(f.log_size, "nvrtcGetProgramLogSize");
  bind(f.log, "nvrtcGetProgramLog");
  bind(f.ptx_size, "nvrtcGetPTXSize");
  bind(f.ptx, "nvrtcGetPTX");
  bind(f.cubin_size, "nvrtcGetCUBINSize");
  bind(f.cubin, "nvrtcGetCUBIN");
  if (!missing.empty()) return path + ": it has no " + missing;
  if (f.version(&version_.major, &version_.minor) != 0) return path + ": nvrtcVersion fails";
  path_ = path;
  identity_ =
      fmt::format("nvrtc {}.{} {}", version_.major, version_.minor, file_of(reinterpret_cast<void*>(f.version)));
  return "";
}

std::vector<int> Nvrtc::supported_architectures() const {
  int count = 0;
  if (functions_->architecture_count(&count) != 0) return {};
  std::vector<int> list(static_cast<std::size_t>(count));
  if (functions_->architectures(list.data()) != 0) return {};
  return list;
}

CompiledModule Nvrtc::compile(const std::string& source, const std::string& name, const std::string& arch,
                              CubinUse cubin) const {
  const Functions& f = *functions_;
  NvrtcProgram program = nullptr;
  if (f.create(&program, source.c_str(), name.c_str(), 0, nullptr, nullptr) != 0)
    throw Error(ErrorKind::kEnvironment, "NVRTC could not take the emitted source");
  const std::unique_ptr<NvrtcProgram, int (*)(NvrtcProgram*)> owner(&program, f.destroy);
  const std::string arch_option = "--gpu-architecture=" + arch;
  std::vector<const char*> options = {arch_option.c_str(), "--std=c++17", "--generate-line-info"};
  if (cubin == CubinUse::kProof) options.push_back("--ptxas-options=-O1");
  const int status = f.compile(program, static_cast<int>(options.size()), options.data());
  auto text = [&](auto size_of, auto get) {
    std::size_t size = 0;
    std::string bytes;
    if (size_of(program, &size) == 0 && size > 0) {
      bytes.resize(size);
      if (get(program, bytes.data()) != 0) bytes.clear();
    }
    return bytes;
  };
  auto without_end = [](std::string s) {
    while (!s.empty() && s.back() == '\0') s.pop_back();
    return s;
  };
  CompiledModule module;
  module.log = without_end(text(f.log_size, f.log));
  if (status != 0)
    throw Error(ErrorKind::kEnvironment,
                {.what = "the emitted source did not compile (NVRTC, " + arch + ")", .found = "\n" + module.log});
  module.ptx = without_end(text(f.ptx_size, f.ptx));
  module.cubin = text(f.cubin_size, f.cubin);
  return module;
}

}  // namespace fusec
