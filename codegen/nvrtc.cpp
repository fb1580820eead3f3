#include "codegen/nvrtc.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <unordered_map>

#include "codegen/content_key.h"
#include "ir/error.h"

namespace fusec {
namespace {

namespace fs = std::filesystem;
using Program = void*;

std::string environment(const char* variable) {
  const char* value = std::getenv(variable);
  return value ? value : "";
}

// The folder and all above it, nearest first.
void add_project_folders(std::vector<std::string>& candidates, fs::path folder) {
  for (; !folder.empty(); folder = folder.parent_path()) {
    for (const char* file : {"libnvrtc.so.13", "libnvrtc.so.12"})
      candidates.push_back((folder / ".deps/nvrtc/lib" / file).string());
    if (folder == folder.root_path()) break;
  }
}

std::vector<std::string> candidates() {
  if (const std::string given = environment("FUSEC_NVRTC"); !given.empty()) return {given};
  std::vector<std::string> list;
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  add_project_folders(list, program.parent_path());
  add_project_folders(list, fs::current_path(ignored));
  for (const std::string& root : {environment("CUDA_HOME"), environment("CUDA_PATH"), std::string("/usr/local/cuda")}) {
    if (root.empty()) continue;
    for (const char* file : {"libnvrtc.so.13", "libnvrtc.so.12"}) list.push_back(root + "/lib64/" + file);
  }
  for (const char* file : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}) list.emplace_back(file);
  return list;
}

// One file an entry: the input that made it, then the results; an entry whose input differs is no hit.
class Cache {
 public:
  Cache(std::string directory, const Nvrtc& nvrtc, const std::string& arch, CubinUse cubin)
      : directory_(std::move(directory)) {
    salt_ = fmt::format("fusec-1 nvrtc {}.{} {}{}\n", nvrtc.version().major, nvrtc.version().minor, arch,
                        cubin == CubinUse::kProof ? " proof" : "");
  }

  bool find(const std::string& source, CompiledModule& module) const {
    if (directory_.empty()) return false;
    std::ifstream file(path_of(source), std::ios::binary);
    std::string input;
    return file && read_part(file, input) && input == salt_ + source && read_part(file, module.ptx) &&
           read_part(file, module.cubin) && read_part(file, module.log);
  }

  // A cache that cannot be written is no error: the next run compiles again.
  void keep(const std::string& source, const CompiledModule& module) const {
    if (directory_.empty()) return;
    std::error_code failed;
    fs::create_directories(directory_, failed);
    const std::string path = path_of(source);
    const std::string temporary =
        fmt::format("{}.{}.{}", path, ::getpid(), std::hash<std::thread::id>{}(std::this_thread::get_id()));
    {
      std::ofstream file(temporary, std::ios::binary);
      write_part(file, salt_ + source);
      write_part(file, module.ptx);
      write_part(file, module.cubin);
      write_part(file, module.log);
      if (!file) {
        file.close();
        fs::remove(temporary, failed);
        return;
      }
    }
    fs::rename(temporary, path, failed);
    if (failed) fs::remove(temporary, failed);
  }

 private:
  std::string path_of(const std::string& source) const { return directory_ + "/" + content_key(salt_ + source); }
  static bool read_part(std::istream& in, std::string& part) {
    std::uint64_t size = 0;
    if (!in.read(reinterpret_cast<char*>(&size), sizeof size) || size > (1ull << 32)) return false;
    part.resize(size);
    return static_cast<bool>(in.read(part.data(), static_cast<std::streamsize>(size)));
  }
  static void write_part(std::ostream& out, const std::string& part) {
    const std::uint64_t size = part.size();
    out.write(reinterpret_cast<const char*>(&size), sizeof size);
    out.write(part.data(), static_cast<std::streamsize>(size));
  }

  std::string directory_, salt_;
};

}  // namespace

struct Nvrtc::Functions {
  int (*version)(int*, int*);
  int (*architecture_count)(int*);
  int (*architectures)(int*);
  int (*create)(Program*, const char*, const char*, int, const char* const*, const char* const*);
  int (*compile)(Program, int, const char* const*);
  int (*destroy)(Program*);
  int (*log_size)(Program, std::size_t*);
  int (*log)(Program, char*);
  int (*ptx_size)(Program, std::size_t*);
  int (*ptx)(Program, char*);
  int (*cubin_size)(Program, std::size_t*);
  int (*cubin)(Program, char*);
};

Nvrtc::Nvrtc() = default;

Nvrtc::~Nvrtc() {
  // The library stays loaded: it has threads and state of its own that do not survive being unloaded.
}

namespace {

// NVRTC opens libnvrtc-builtins by its bare name when it first needs it, which the loader finds only on its own path.
// Loaded beforehand from where NVRTC itself lies, it is found by that name anywhere.
void load_builtins_beside(const std::string& library) {
  if (library.find('/') == std::string::npos) return;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(library).parent_path(), ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("libnvrtc-builtins.so.", 0) == 0) dlopen(entry.path().c_str(), RTLD_NOW | RTLD_LOCAL);
  }
}

}  // namespace

std::shared_ptr<const Nvrtc> Nvrtc::load(std::string* why) {
  std::string tried;
  for (const std::string& path : candidates()) {
    if (path.find('/') != std::string::npos && !fs::exists(path)) continue;
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      tried += fmt::format("{}{}", tried.empty() ? "" : ", ", path);
      continue;
    }
    load_builtins_beside(path);
    auto nvrtc = std::shared_ptr<Nvrtc>(new Nvrtc);
    nvrtc->functions_ = std::make_unique<Functions>();
    Functions& f = *nvrtc->functions_;
    bool complete = true;
    auto bind = [&](auto& function, const char* symbol) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, symbol));
      complete = complete && function;
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
    if (!complete || f.version(&nvrtc->version_.major, &nvrtc->version_.minor) != 0) continue;
    nvrtc->library_ = library;
    nvrtc->path_ = path;
    return nvrtc;
  }
  if (why)
    *why =
        "no libnvrtc found: set FUSEC_NVRTC to one, install a CUDA toolkit, or unpack the wheel nvidia-cuda-nvrtc "
        "into .deps/nvrtc" +
        (tried.empty() ? std::string() : " (tried " + tried + ")");
  return nullptr;
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
  Program program = nullptr;
  if (f.create(&program, source.c_str(), name.c_str(), 0, nullptr, nullptr) != 0)
    throw Error(ErrorKind::kEnvironment, "NVRTC could not take the emitted source");
  const std::unique_ptr<Program, int (*)(Program*)> owner(&program, f.destroy);
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

std::vector<CompiledModule> compile_all(const Nvrtc& nvrtc, const std::vector<std::string>& sources,
                                        const std::string& arch, const CompileOptions& options) {
  std::unordered_map<std::string, std::size_t> first_of;
  std::vector<std::size_t> distinct, origin(sources.size());
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const auto [it, fresh] = first_of.emplace(sources[i], i);
    origin[i] = it->second;
    if (fresh) distinct.push_back(i);
  }
  std::vector<CompiledModule> modules(sources.size());
  std::vector<std::exception_ptr> failures(sources.size());
  // A module to run is also a proof.
  const Cache cache(options.cache_directory, nvrtc, arch, options.cubin);
  const Cache better(options.cubin == CubinUse::kProof ? options.cache_directory : "", nvrtc, arch, CubinUse::kRun);
  std::atomic<std::size_t> next{0};
  auto work = [&] {
    for (std::size_t k = next++; k < distinct.size(); k = next++) {
      const std::size_t i = distinct[k];
      try {
        if (cache.find(sources[i], modules[i]) || better.find(sources[i], modules[i])) continue;
        modules[i] = nvrtc.compile(sources[i], "out.cu", arch, options.cubin);
        cache.keep(sources[i], modules[i]);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    }
  };
  const std::size_t processors = std::max(1u, std::thread::hardware_concurrency());
  const std::size_t jobs =
      std::min(options.jobs > 0 ? static_cast<std::size_t>(options.jobs) : processors, distinct.size());
  std::vector<std::thread> threads;
  for (std::size_t j = 1; j < jobs; ++j) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
  for (std::size_t i = 0; i < sources.size(); ++i)
    if (origin[i] != i) modules[i] = modules[origin[i]];
  return modules;
}

std::string default_cache_directory() {
  if (const std::string cache = environment("XDG_CACHE_HOME"); !cache.empty()) return cache + "/fusec";
  if (const std::string home = environment("HOME"); !home.empty()) return home + "/.cache/fusec";
  return "";
}

}  // namespace fusec
