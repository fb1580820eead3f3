// A file's bytes, mapped into memory: only pages that are touched are read. A file that is read whole (text, a pipe, a
// device without an end) has a size limit (fusec/resource_limits.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fusec {

class MappedFile {
 public:
  // Throws Error(kInput) whose `file` is `path`. What is not a regular file (a pipe) is read whole, up to the limit.
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

// Throws Error(kInput) for a file that is read whole and has more bytes than the limit of this thread's budget, or
// ResourceLimits' default where it has none.
void require_file_size(std::uint64_t bytes, const std::string& path);

// A text file that a user names: a plan, target, patterns. Throws Error(kInput).
std::string read_text_file(const std::string& path);
std::string read_standard_input();

}  // namespace fusec
