// A file's bytes, mapped into memory: only pages that are touched are read.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fusec {

class MappedFile {
 public:
  // Throws Error(kInput) whose `file` is `path`. What is not a regular file (a pipe) is read whole.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view bytes() const { return mapping_ ? std::string_view(mapping_, size_) : std::string_view(read_); }

 private:
  const char* mapping_ = nullptr;
  std::size_t size_ = 0;
  std::string read_;
};

}  // namespace fusec
