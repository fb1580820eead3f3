// Preloaded (LD_PRELOAD) by tests: lets one call that opens, writes, names or removes a file fail, or kills the process
// there.
//
// FAIL_AT=N: the N-th call, over all calls of the process, from 1. FAIL_HOW=full: it fails with ENOSPC, a write after
// half of its bytes (the following calls, too: the disk stays full); short: a write takes half of its bytes and
// succeeds; kill: the process is killed, a write after half of its bytes. FAIL_COUNT=FILE: how many calls there were is
// written there. FAIL_UNNAMED=1: the file system has no files without a name (O_TMPFILE). Calls of child processes are
// not counted.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

std::atomic<long> calls{0};
pid_t process = 0;
long fail_at = 0;
enum class How { kFull, kShort, kKill } how = How::kFull;

[[gnu::constructor]] void begin() {
  process = getpid();
  if (const char* at = std::getenv("FAIL_AT")) fail_at = std::atol(at);
  const char* const wanted = std::getenv("FAIL_HOW");
  if (wanted && std::strcmp(wanted, "kill") == 0) how = How::kKill;
  if (wanted && std::strcmp(wanted, "short") == 0) how = How::kShort;
}

[[gnu::destructor]] void end() {
  const char* const path = std::getenv("FAIL_COUNT");
  if (!path || getpid() != process) return;
  if (FILE* const file = std::fopen(path, "w")) {
    std::fprintf(file, "%ld\n", calls.load());
    std::fclose(file);
  }
}

bool is_now() {
  if (getpid() != process || fail_at == 0) {
    if (getpid() == process) ++calls;
    return false;
  }
  const long call = ++calls;
  return call == fail_at || (how == How::kFull && call > fail_at);
}

// A call other than a write. True: it fails.
bool fails() {
  if (!is_now()) return false;
  if (how == How::kKill) kill(process, SIGKILL);
  errno = ENOSPC;
  return how == How::kFull;
}

template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

ssize_t write(int file, const void* bytes, size_t count) {
  static const auto real = next<ssize_t (*)(int, const void*, size_t)>("write");
  if (!is_now()) return real(file, bytes, count);
  const ssize_t half = count > 1 ? real(file, bytes, count / 2) : -1;
  if (how == How::kKill) kill(process, SIGKILL);
  if (how == How::kShort) return count > 1 ? half : real(file, bytes, count);
  errno = ENOSPC;
  return -1;
}

ssize_t pwrite(int file, const void* bytes, size_t count, off_t at) {
  static const auto real = next<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite");
  return fails() ? -1 : real(file, bytes, count, at);
}

ssize_t writev(int file, const iovec* parts, int count) {
  static const auto real = next<ssize_t (*)(int, const iovec*, int)>("writev");
  return fails() ? -1 : real(file, parts, count);
}

int fsync(int file) {
  static const auto real = next<int (*)(int)>("fsync");
  return fails() ? -1 : real(file);
}

int close(int file) {
  static const auto real = next<int (*)(int)>("close");
  if (fails()) {
    real(file);
    errno = ENOSPC;
    return -1;
  }
  return real(file);
}

#define FAIL_OPEN(name, parameters, arguments)                             \
  int name parameters {                                                    \
    va_list more;                                                          \
    va_start(more, flags);                                                 \
    const mode_t mode = va_arg(more, mode_t);                              \
    va_end(more);                                                          \
    static const auto real = next<int(*) parameters>(#name);               \
    if ((flags & O_TMPFILE) == O_TMPFILE && std::getenv("FAIL_UNNAMED")) { \
      errno = EOPNOTSUPP;                                                  \
      return -1;                                                           \
    }                                                                      \
    const bool writes = (flags & (O_WRONLY | O_RDWR | O_CREAT)) != 0;      \
    return writes && fails() ? -1 : real arguments;                        \
  }
FAIL_OPEN(open, (const char* path, int flags, ...), (path, flags, mode))
FAIL_OPEN(open64, (const char* path, int flags, ...), (path, flags, mode))
FAIL_OPEN(openat, (int folder, const char* path, int flags, ...), (folder, path, flags, mode))
FAIL_OPEN(openat64, (int folder, const char* path, int flags, ...), (folder, path, flags, mode))

#define FAIL_CALL(name, parameters, arguments)               \
  int name parameters {                                      \
    static const auto real = next<int(*) parameters>(#name); \
    return fails() ? -1 : real arguments;                    \
  }
FAIL_CALL(mkdir, (const char* path, mode_t mode), (path, mode))
FAIL_CALL(rename, (const char* from, const char* to), (from, to))
FAIL_CALL(renameat, (int from_folder, const char* from, int to_folder, const char* to),
          (from_folder, from, to_folder, to))
FAIL_CALL(linkat, (int from_folder, const char* from, int to_folder, const char* to, int flags),
          (from_folder, from, to_folder, to, flags))
FAIL_CALL(ftruncate, (int file, off_t size), (file, size))
FAIL_CALL(futimens, (int file, const timespec* times), (file, times))
FAIL_CALL(mkstemp, (char* path), (path))
FAIL_CALL(mkstemp64, (char* path), (path))
FAIL_CALL(memfd_create, (const char* name, unsigned flags), (name, flags))
}
