#include "output_file.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "ir/error.h"
#include "ir/replace_file.h"

namespace fusec {
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

TemporaryFile::TemporaryFile() : path_(new_temporary_file("")) {}

TemporaryFile::~TemporaryFile() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

}  // namespace fusec
