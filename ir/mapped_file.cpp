#include "ir/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "ir/error.h"

namespace fusec {
namespace {

// Closes the descriptor when the constructor is done with it, one way or the other.
struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

[[noreturn]] void fail(const std::string& path, int error) {
  throw Error(ErrorKind::kInput, {.file = path, .what = "cannot be read", .found = std::strerror(error)});
}

std::string read_all(int descriptor, const std::string& path) {
  std::string text;
  std::array<char, 65536> buffer;
  for (;;) {
    const ssize_t got = ::read(descriptor, buffer.data(), buffer.size());
    if (got == 0) return text;
    if (got > 0)
      text.append(buffer.data(), static_cast<std::size_t>(got));
    else if (errno != EINTR)
      fail(path, errno);
  }
}

}  // namespace

MappedFile::MappedFile(const std::string& path) {
  // A name with a NUL in it would silently name another file.
  if (path.find('\0') != std::string::npos) fail(path.substr(0, path.find('\0')), ENOENT);
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.number < 0) fail(path, errno);
  struct stat status;
  if (::fstat(file.number, &status) != 0) fail(path, errno);
  if (S_ISDIR(status.st_mode)) fail(path, EISDIR);
  if (!S_ISREG(status.st_mode)) {
    read_ = read_all(file.number, path);
    return;
  }
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ == 0) return;
  void* mapping = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.number, 0);
  if (mapping == MAP_FAILED) fail(path, errno);
  mapping_ = static_cast<const char*>(mapping);
}

MappedFile::~MappedFile() {
  if (mapping_) ::munmap(const_cast<char*>(mapping_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : mapping_(std::exchange(other.mapping_, nullptr)), size_(other.size_), read_(std::move(other.read_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(size_, other.size_);
  std::swap(read_, other.read_);
  return *this;
}

}  // namespace fusec
