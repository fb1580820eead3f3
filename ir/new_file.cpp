#include "ir/new_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>

namespace fusec {
namespace {

// Names of unfinished files for the signal handler. A file that finds no free entry is not removed.
struct Unfinished {
  std::atomic<bool> taken{false};
  std::atomic<bool> named{false};
  char path[PATH_MAX];
};
std::array<Unfinished, 48> unfinished_files;

void note_unfinished(const std::string& path) {
  if (path.size() >= PATH_MAX) return;
  for (Unfinished& place : unfinished_files) {
    if (place.taken.exchange(true)) continue;
    std::memcpy(place.path, path.c_str(), path.size() + 1);
    place.named = true;
    return;
  }
}

void forget_unfinished(const std::string& path) {
  for (Unfinished& place : unfinished_files)
    if (place.named && path == place.path) {
      place.named = false;
      place.taken = false;
    }
}

// Blocks SIGXFSZ, which a write beyond the limit on a file's size (RLIMIT_FSIZE) sends and which would end the process.
// The write then fails with an error, as on a full disk.
class NoFileSizeSignal {
 public:
  NoFileSizeSignal() {
    sigset_t pending;
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGXFSZ) == 1;
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~NoFileSizeSignal() {
    const timespec at_once{};
    if (!was_pending_) sigtimedwait(&signal_, nullptr, &at_once);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t signal_, before_;
  bool was_pending_;
};

std::string folder_of(const std::string& name) {
  const std::size_t slash = name.rfind('/');
  return slash == std::string::npos ? "." : name.substr(0, slash + 1);
}

std::string path_of_descriptor(int file) {
  return "/proc/self/fd/" + std::to_string(file);
}

}  // namespace

std::string unforeseen_name(const std::string& prefix) {
  std::uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number)
    number = static_cast<std::uint64_t>(getpid()) << 32 ^ static_cast<std::uint64_t>(std::clock());
  return fmt::format("{}{:016x}", prefix, number);
}

void remove_unfinished_files() noexcept {
  for (const Unfinished& place : unfinished_files)
    if (place.named) unlink(place.path);
  for (const Unfinished& place : unfinished_files)
    if (place.named) rmdir(place.path);
}

UnfinishedPath::UnfinishedPath(std::string path) : path_(std::move(path)) {
  note_unfinished(path_);
}

UnfinishedPath::~UnfinishedPath() {
  forget_unfinished(path_);
}

NewFile::NewFile(int folder, std::string name, mode_t mode) : folder_(folder), name_(std::move(name)) {
  if (!open_without_name(mode) && error_ == 0) open_with_name(mode);
}

NewFile::~NewFile() {
  if (file_ != -1) close(file_);
  if (temporary_.empty()) return;
  unlinkat(folder_, temporary_.c_str(), 0);
  forget_unfinished(temporary_);
}

bool NewFile::fail(int error) {
  if (error_ == 0) error_ = error;
  return false;
}

bool NewFile::open_without_name(mode_t mode) {
  file_ = openat(folder_, folder_of(name_).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
  if (file_ == -1) {
    const bool unsupported = errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT || errno == EINVAL;
    return unsupported ? false : fail(errno);
  }
  if (access(path_of_descriptor(file_).c_str(), F_OK) == 0) return true;
  close(file_);  // without /proc it cannot get a name later
  file_ = -1;
  return false;
}

void NewFile::open_with_name(mode_t mode) {
  temporary_ = unforeseen_name(name_ + ".partial-");
  if (folder_ == AT_FDCWD) note_unfinished(temporary_);
  file_ = openat(folder_, temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  if (file_ != -1) return;
  fail(errno);
  forget_unfinished(temporary_);
  temporary_.clear();
}

void NewFile::write(std::string_view bytes) {
  const NoFileSizeSignal none;
  while (error_ == 0 && !bytes.empty()) {
    const ssize_t written = ::write(file_, bytes.data(), bytes.size());
    if (written > 0)
      bytes.remove_prefix(static_cast<std::size_t>(written));
    else if (written == 0 || errno != EINTR)
      fail(written == 0 ? EIO : errno);
  }
}

bool NewFile::link_as(const std::string& name) const {
  return linkat(AT_FDCWD, path_of_descriptor(file_).c_str(), folder_, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

bool NewFile::place() {
  if (error_ != 0) return false;
  if (temporary_.empty()) {
    if (link_as(name_)) return true;
    if (errno != EEXIST) return fail(errno);
    temporary_ = unforeseen_name(name_ + ".partial-");
    if (folder_ == AT_FDCWD) note_unfinished(temporary_);
    if (!link_as(temporary_)) return fail(errno);
  }
  const int closed = close(file_);
  file_ = -1;
  if (closed != 0) return fail(errno);
  if (renameat(folder_, temporary_.c_str(), folder_, name_.c_str()) != 0) return fail(errno);
  forget_unfinished(temporary_);
  temporary_.clear();
  return true;
}

}  // namespace fusec
