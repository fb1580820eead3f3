#include "codegen/nvrtc/nvrtc_search_paths.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace fusec {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNames[] = {"libnvrtc.so.13", "libnvrtc.so.12"};

std::string environment(const char* variable) {
  const char* value = std::getenv(variable);
  return value ? value : "";
}

NvrtcSearchPaths only(const std::string& path, const std::string& chosen_by) {
  NvrtcSearchPaths places{{path}, chosen_by, ""};
  if (path.find('/') != std::string::npos && path.front() != '/')
    places.refused = "the path counts from the working directory";
  return places;
}

// True if only root, the user, or the program's owner could have put the file or folder there. A folder next to the
// program may be writable by others, for example /tmp.
bool is_trusted(const std::string& path, uid_t program_owner) {
  struct stat file {};
  if (stat(path.c_str(), &file) != 0 || (file.st_mode & S_IWOTH) != 0) return false;
  return file.st_uid == 0 || file.st_uid == geteuid() || file.st_uid == program_owner;
}

// The shared library with this code, such as libfusec.so; "" if it is linked into a program.
fs::path own_library() {
  Dl_info info{};
  void* map = nullptr;
  if (!dladdr1(reinterpret_cast<const void*>(&own_library), &info, &map, RTLD_DL_LINKMAP) || !map) return "";
  return static_cast<const link_map*>(map)->l_name;  // "" for the program itself
}

void add_installed(std::vector<std::string>& paths) {
  std::error_code unknown;
  const fs::path program = fs::read_symlink("/proc/self/exe", unknown);
  struct stat file {};
  const uid_t owner = stat(program.c_str(), &file) == 0 ? file.st_uid : 0;
  std::vector<fs::path> folders = {fs::path(FUSEC_INSTALL_PREFIX) / "lib/fusec"};
  for (const fs::path& holder : {own_library(), program})
    if (holder.is_absolute()) folders.insert(folders.begin(), holder.parent_path().parent_path() / "lib/fusec");
  for (const fs::path& folder : folders) {
    if (!is_trusted(folder, owner)) continue;
    for (const char* name : kNames)
      if (const std::string path = folder / name; is_trusted(path, owner)) paths.push_back(path);
  }
}

void add_toolkit(std::vector<std::string>& paths, const std::string& root) {
  if (root.empty() || root.front() != '/') return;
  for (const char* name : kNames)
    for (const char* folder : {"lib64", "lib", "targets/x86_64-linux/lib"})
      if (const std::string path = root + "/" + folder + "/" + name; std::ranges::find(paths, path) == paths.end())
        paths.push_back(path);
}

}  // namespace

NvrtcSearchPaths nvrtc_search_paths(const std::string& chosen) {
  if (const std::string given = environment("FUSEC_NVRTC"); !given.empty()) return only(given, "FUSEC_NVRTC");
  if (!chosen.empty()) return only(chosen, "the option nvrtc_library");
  NvrtcSearchPaths places;
  add_installed(places.paths);
  for (const std::string& root : {environment("CUDA_HOME"), environment("CUDA_PATH"), std::string("/usr/local/cuda")})
    add_toolkit(places.paths, root);
  for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}) places.paths.emplace_back(name);
  return places;
}

}  // namespace fusec
