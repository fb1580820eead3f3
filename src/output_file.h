// Results onto disk: written to a temporary file beside the target and renamed, so that a failed run leaves nothing.
#pragma once

#include <string>
#include <string_view>

namespace fusec {

// "-" is standard output. Throws Error(kEnvironment) when it cannot be written.
void write_output(const std::string& path, std::string_view content);

// The path of a new, empty file in the folder for temporary ones, whose name ends so. It stays.
std::string new_temporary_file(const std::string& extension);

// A file of its own in the folder for temporary ones, which goes with the object.
class TemporaryFile {
 public:
  TemporaryFile();
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace fusec
