// Writes outputs to disk: to a temporary file in the same folder, which is then renamed. A failed run leaves nothing.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ir/new_file.h"

namespace fusec {

// "-" is standard output. Throws Error(kEnvironment) if the file cannot be written.
void write_output(const std::string& path, std::string_view content);

// Throws Error(kUsage) if a file would be written twice, or is also read. "", "-" and devices are no files.
void check_written(std::span<const std::string> written, std::span<const std::string> read);

// Creates an empty file with this extension in the temporary folder and returns its path. The file stays.
std::string new_temporary_file(const std::string& extension);

// A new file in the temporary folder. The destructor removes it.
class TemporaryFile {
 public:
  TemporaryFile();
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  UnfinishedPath unfinished_;
};

}  // namespace fusec
