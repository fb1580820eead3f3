#include "output_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "ir/error.h"

namespace fusec {

void write_output(const std::string& path, std::string_view content) {
  if (path == "-") {
    const bool written = std::fwrite(content.data(), 1, content.size(), stdout) == content.size();
    if (!written || std::fflush(stdout) != 0) throw Error(ErrorKind::kEnvironment, "standard output cannot be written");
    return;
  }
  const std::string temporary = path + ".partial" + std::to_string(getpid());
  std::ofstream out(temporary, std::ios::binary);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  out.close();
  std::error_code failed;
  if (out) std::filesystem::rename(temporary, path, failed);
  if (!out || failed) {
    const std::string reason = failed ? failed.message() : std::strerror(errno);
    std::filesystem::remove(temporary, failed);
    throw Error(ErrorKind::kEnvironment, {.file = path, .what = "the output cannot be written: " + reason});
  }
}

}  // namespace fusec
