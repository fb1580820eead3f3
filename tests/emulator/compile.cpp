#include "emulator/compile.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

namespace fusec::emulator::testing {
namespace {

std::string find_nvcc() {
  for (const char* place : {"/usr/local/cuda/bin/nvcc", "/usr/bin/nvcc", "/opt/cuda/bin/nvcc"}) {
    if (access(place, X_OK) == 0) return place;
  }
  return {};
}

std::string compile(const std::string& nvcc, const std::string& source, const std::string& arch) {
  const auto output = std::filesystem::temp_directory_path() / fmt::format("fusec_emulator_{}_{}.ptx", arch, getpid());
  const std::string command = fmt::format("{} -ptx -std=c++17 -lineinfo -arch={} {}/emulator/kernels/{} -o {}", nvcc,
                                          arch, FUSEC_TESTS_DIR, source, output.string());
  if (std::system(command.c_str()) != 0) return {};
  std::ifstream file(output);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::filesystem::remove(output);
  return text;
}

}  // namespace

const Module* compiled_module(const char* source, const char* arch) {
  static std::map<std::string, Module> modules;
  const std::string nvcc = find_nvcc();
  if (nvcc.empty()) {
    MESSAGE("skipped: nvcc is missing");
    return nullptr;
  }
  const auto known = modules.find(source);
  if (known != modules.end()) return &known->second;
  const std::string text = compile(nvcc, source, arch);
  REQUIRE(!text.empty());
  return &modules.emplace(source, Module(text, source)).first->second;
}

CompiledLibrary::~CompiledLibrary() {
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

std::optional<CompiledLibrary> compile_library(const char* source, const char* arch) {
  const std::string kernels = FUSEC_TESTS_DIR "/emulator/kernels";
  return compile_library({kernels + "/" + source}, kernels, arch);
}

std::optional<CompiledLibrary> compile_library(const std::vector<std::string>& files, const std::string& includes,
                                               const char* arch) {
  const std::string nvcc = find_nvcc();
  if (nvcc.empty()) {
    MESSAGE("skipped: nvcc is missing");
    return std::nullopt;
  }
  // nvcc's own intermediate PTX is kept: a second compilation would cost as much again.
  const std::filesystem::path stem = std::filesystem::path(files.front()).stem();
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("fusec_{}_{}", stem.string(), getpid());
  std::filesystem::create_directories(folder);
  const std::string library = (folder / "kernels.so").string();
  const std::string command = fmt::format(
      "{} -shared -std=c++17 -lineinfo -Xcompiler -fPIC -Xlinker -Bsymbolic --cudart none --keep --keep-dir {} "
      "-gencode arch=compute_{},code=compute_{} -I{} {} {}/emulator/kernels/emulated_runtime.cu -o {}",
      nvcc, folder.string(), arch, arch, includes, fmt::join(files, " "), FUSEC_TESTS_DIR, library);
  CompiledLibrary made(folder.string(), library, {});
  REQUIRE(std::system(command.c_str()) == 0);
  std::ifstream file(folder / (stem.string() + ".ptx"));
  made.ptx.assign((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  REQUIRE(!made.ptx.empty());
  return made;
}

}  // namespace fusec::emulator::testing
