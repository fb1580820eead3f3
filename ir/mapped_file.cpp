#include "ir/mapped_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "ir/budget.h"
#include "ir/error.h"

namespace fusec {
namespace {

// Closes the descriptor at the end of the scope.
struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

[[noreturn]] void fail(const std::string& path, int error) {
  throw Error(ErrorKind::kInput, {.file = path, .what = "cannot be read", .found = std::strerror(error)});
}

std::int64_t file_limit() {
  const Budget* budget = current_budget();
  const std::int64_t limit = budget ? budget->limits().file_bytes : ResourceLimits{}.file_bytes;
  return limit == 0 ? std::numeric_limits<std::int64_t>::max() : limit;
}

// Waits until a terminal or pipe has something to read, and checks the time limit meanwhile.
void wait_for_bytes(int descriptor) {
  Budget* const budget = current_budget();
  if (!budget || !budget->is_limited()) return;
  pollfd waiting{.fd = descriptor, .events = POLLIN, .revents = 0};
  constexpr int kMilliseconds = 20;
  while (::poll(&waiting, 1, kMilliseconds) == 0) budget->require();
}

std::string read_all(int descriptor, const std::string& path) {
  std::string text;
  std::array<char, 65536> buffer;
  for (;;) {
    require_file_size(text.size(), path);
    wait_for_bytes(descriptor);
    count_step();
    const ssize_t got = ::read(descriptor, buffer.data(), buffer.size());
    if (got == 0) return text;
    if (got > 0)
      text.append(buffer.data(), static_cast<std::size_t>(got));
    else if (errno != EINTR)
      fail(path, errno);
  }
}

}  // namespace

void require_file_size(std::uint64_t bytes, const std::string& path) {
  if (bytes <= static_cast<std::uint64_t>(file_limit())) return;
  throw Error(ErrorKind::kInput,
              {.file = path,
               .what = "the file is larger than the limit",
               .found = "at least " + std::to_string(bytes) + " bytes",
               .expected = "at most " + std::to_string(file_limit()),
               .hint = "--max-file-size=SIZE (ResourceLimits::file_bytes in the library) raises it"});
}

std::string read_standard_input() {
  return read_all(STDIN_FILENO, "-");
}

std::string read_text_file(const std::string& path) {
  const MappedFile file(path);
  require_file_size(file.bytes().size(), path);
  return std::string(file.bytes());
}

MappedFile::MappedFile(const std::string& path) {
  // open() would cut a name at a NUL and open another file.
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
