#include "output_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
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

}  // namespace

void write_output(const std::string& path, std::string_view content) {
  if (path == "-") {
    const bool written = std::fwrite(content.data(), 1, content.size(), stdout) == content.size();
    if (!written || std::fflush(stdout) != 0) throw Error(ErrorKind::kEnvironment, "standard output cannot be written");
    return;
  }
  std::error_code unknown;
  // A device or pipe is written to, and a link followed: only a file is replaced.
  if (std::filesystem::exists(path, unknown) && !std::filesystem::is_regular_file(path, unknown) &&
      !std::filesystem::is_directory(path, unknown)) {
    std::ofstream out(path, std::ios::binary);
    if (!out.write(content.data(), static_cast<std::streamsize>(content.size())).flush())
      throw Error(ErrorKind::kEnvironment, {.file = path, .what = "the output cannot be written"});
    return;
  }
  const std::string place = behind_links(path);
  const std::string temporary = place + ".partial" + std::to_string(getpid());
  std::ofstream out(temporary, std::ios::binary);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  out.close();
  std::error_code failed;
  if (out) std::filesystem::rename(temporary, place, failed);
  if (!out || failed) {
    const std::string reason = failed ? failed.message() : std::strerror(errno);
    std::filesystem::remove(temporary, failed);
    throw Error(ErrorKind::kEnvironment, {.file = path, .what = "the output cannot be written: " + reason});
  }
}

TemporaryFile::TemporaryFile() {
  std::string path = (std::filesystem::temp_directory_path() / "fusec.XXXXXX").string();
  const int file = mkstemp(path.data());
  if (file == -1) throw Error(ErrorKind::kEnvironment, {.file = path, .what = "no temporary file can be made"});
  close(file);
  path_ = std::move(path);
}

TemporaryFile::~TemporaryFile() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

}  // namespace fusec
