// A file mapped into memory: only the pages that are touched are read. Files that must be read as a whole (text, pipes,
// devices) have a size limit (fusec/resource_limits.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fusec {

class MappedFile {
 public:
  // Anything but a regular file (a pipe) is read as a whole, up to the size limit. Throws Error(kInput) that names
  // `path` as its file.
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

// Throws Error(kInput) if `bytes` is more than the limit for files that are read as a whole: that of this thread's
// budget, or the default of ResourceLimits without a budget.
void require_file_size(std::uint64_t bytes, const std::string& path);

// The contents of a text file that a user names: a plan, target, patterns. Throws Error(kInput).
std::string read_text_file(const std::string& path);
std::string read_standard_input();

}  // namespace fusec
