#include "output_file.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "ir/error.h"
#include "ir/replace_file.h"

namespace fusec {

void check_written(std::span<const std::string> written, std::span<const std::string> read) {
  // Devices and pipes, such as /dev/stdout, may be named several times.
  const auto is_file = [](const std::string& path) {
    std::error_code none;
    return !path.empty() && path != "-" && !std::filesystem::is_other(std::filesystem::status(path, none));
  };
  std::vector<std::filesystem::path> taken;
  for (const std::string& path : read)
    if (is_file(path)) taken.push_back(std::filesystem::weakly_canonical(std::filesystem::absolute(path)));
  const auto inputs = static_cast<std::ptrdiff_t>(taken.size());
  for (const std::string& path : written) {
    if (!is_file(path)) continue;
    const auto file = std::filesystem::weakly_canonical(std::filesystem::absolute(path));
    const auto same = std::ranges::find(taken, file);
    if (same != taken.end())
      throw Error(ErrorKind::kUsage, path + (same - taken.begin() < inputs ? " is read, and would be overwritten"
                                                                           : " would be written twice"));
    taken.push_back(file);
  }
}

void write_output(const std::string& path, std::string_view content) {
  if (path == "-") {
    const bool written = std::fwrite(content.data(), 1, content.size(), stdout) == content.size();
    if (!written || std::fflush(stdout) != 0) throw Error(ErrorKind::kEnvironment, "standard output cannot be written");
    return;
  }
  replace_file(path,
               [&](std::ostream& out) { out.write(content.data(), static_cast<std::streamsize>(content.size())); });
}

std::string new_temporary_file(const std::string& extension) {
  std::string path = (std::filesystem::temp_directory_path() / ("fusec.XXXXXX" + extension)).string();
  const int file = mkstemps(path.data(), static_cast<int>(extension.size()));
  if (file == -1) throw Error(ErrorKind::kEnvironment, {.file = path, .what = "no temporary file can be made"});
  close(file);
  return path;
}

TemporaryFile::TemporaryFile() : path_(new_temporary_file("")), unfinished_(path_) {}

TemporaryFile::~TemporaryFile() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

}  // namespace fusec
