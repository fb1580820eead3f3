#include "runtime/host_part/compile_host.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "ir/error.h"
#include "ir/new_file.h"
#include "ir/program.h"
#include "runtime/device_call.h"
#include "runtime/host_part/stand_in_headers.h"

namespace fusec {
namespace {

namespace fs = std::filesystem;

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (fs::temp_directory_path() / "fusec-host-XXXXXX").string();
    if (!mkdtemp(pattern.data())) throw Error(ErrorKind::kEnvironment, "no folder could be made in " + pattern);
    path_ = pattern;
    unfinished_.emplace_back(pattern);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string file(std::string_view name) const { return (path_ / name).string(); }
  // A signal's handler removes this file, too.
  void note(std::string_view name) { unfinished_.emplace_back(file(name)); }
  void write(std::string_view name, std::string_view text) {
    note(name);
    std::ofstream out(file(name), std::ios::binary);
    if (!(out << text))
      throw Error(ErrorKind::kEnvironment, Error::Parts{.file = file(name), .what = "cannot be written"});
  }
  std::string read(std::string_view name) const {
    std::ostringstream text;
    text << std::ifstream(file(name), std::ios::binary).rdbuf();
    return text.str();
  }

 private:
  fs::path path_;
  std::deque<UnfinishedPath> unfinished_;
};

std::string host_source(const std::string& out_cu, const Graph& graph, const LaunchPlan& plan) {
  const std::size_t begin = out_cu.find("\n#ifndef __CUDACC_RTC__");
  if (begin == std::string::npos) throw InternalError("the emitted file has no host part");
  std::string text =
      "#include \"cuda_runtime.h\"\n\nextern \"C\" {\nconst fusec_recorded_runtime* fusec_runtime = nullptr;\n";
  for (const KernelSource& kernel : plan.kernels) text += "void " + kernel.name + "() {}\n";
  std::set<std::string> launchers;
  for (const LaunchStep& step : plan.steps) {
    if (step.kind == LaunchStep::Kind::kExternal) launchers.insert(launcher_symbol(graph, graph.nodes[step.node]));
  }
  for (const std::string& launcher : launchers)
    text += fmt::format(
        "cudaError_t {0}(const void* const* inputs, void* const* outputs, const long long* extents, const char* "
        "attrs,\n"
        "    cudaStream_t stream) {{\n  return cudaError_t(fusec_runtime->external(fusec_runtime->recorder, \"{0}\", "
        "inputs, outputs, extents, attrs, stream));\n}}\n",
        launcher);
  return text + "}  // extern \"C\"\n" + out_cu.substr(begin);
}

}  // namespace

SharedLibrary::SharedLibrary(const std::string& path) : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (!handle_) throw Error(ErrorKind::kEnvironment, std::string("the compiled host part: ") + dlerror());
}

SharedLibrary::~SharedLibrary() {
  dlclose(handle_);
}

void* SharedLibrary::symbol(const std::string& name) const {
  void* found = dlsym(handle_, name.c_str());
  if (!found) throw Error(ErrorKind::kEnvironment, "the compiled host part has no " + name);
  return found;
}

std::unique_ptr<SharedLibrary> compile_host(const std::string& out_cu, const Graph& graph, const LaunchPlan& plan,
                                            const std::string& compiler) {
  TemporaryFolder folder;
  for (const std::string_view made : {"host.so", "log.txt"}) folder.note(made);
  for (const StandInHeader& header : stand_in_headers()) folder.write(header.name, header.text);
  folder.write("host.cpp", host_source(out_cu, graph, plan));
  std::vector<std::string> compilers{compiler};
  const char* const chosen = std::getenv("CXX");
  if (compiler.empty()) compilers = {chosen ? chosen : "c++", "c++", "g++", "clang++"};
  for (const std::string& name : compilers) {
    const std::string program = find_program(name);
    if (program.empty()) continue;
    const int status = run_program({program, "-std=c++17", "-O0", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror",
                                    "-I" + folder.file(""), folder.file("host.cpp"), "-o", folder.file("host.so")},
                                   folder.file("log.txt"));
    if (status == 0) return std::make_unique<SharedLibrary>(folder.file("host.so"));
    if (status != -1 && status != 127)
      throw Error(ErrorKind::kEnvironment,
                  Error::Parts{.what = "the host part did not compile", .found = "\n" + folder.read("log.txt")});
  }
  throw Error(ErrorKind::kEnvironment, Error::Parts{.what = "no C++ compiler for the host part",
                                                    .expected = "c++, g++ or clang++ in a folder of PATH",
                                                    .hint = "set CXX to a compiler's name or absolute path"});
}

}  // namespace fusec
