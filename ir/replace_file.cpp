#include "ir/replace_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "ir/error.h"

namespace fusec {
namespace {

// Where the links lead, also when there is nothing yet.
std::string behind_links(std::filesystem::path path) {
  constexpr int kMostLinks = 40;
  std::error_code unknown;
  for (int i = 0; i < kMostLinks && std::filesystem::is_symlink(path, unknown); ++i)
    path = path.parent_path() / std::filesystem::read_symlink(path, unknown);
  return path.string();
}

[[noreturn]] void cannot_write(const std::string& path, const std::string& reason) {
  throw Error(ErrorKind::kEnvironment, {.file = path, .what = "the output cannot be written: " + reason});
}

}  // namespace

void replace_file(const std::string& path, const std::function<void(std::ostream&)>& write) {
  std::error_code unknown;
  if (std::filesystem::exists(path, unknown) && !std::filesystem::is_regular_file(path, unknown) &&
      !std::filesystem::is_directory(path, unknown)) {
    std::ofstream out(path, std::ios::binary);
    write(out);
    if (!out.flush()) cannot_write(path, std::strerror(errno));
    return;
  }
  const std::string place = behind_links(path);
  const std::string temporary = place + ".partial" + std::to_string(getpid());
  std::ofstream out(temporary, std::ios::binary);
  write(out);
  out.close();
  std::error_code failed;
  if (out) std::filesystem::rename(temporary, place, failed);
  if (!out || failed) {
    const std::string reason = failed ? failed.message() : std::strerror(errno);
    std::filesystem::remove(temporary, failed);
    cannot_write(path, reason);
  }
}

}  // namespace fusec
