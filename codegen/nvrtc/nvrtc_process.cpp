#include "codegen/nvrtc/nvrtc_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>

#include "ir/budget.h"
#include "ir/error.h"

namespace fusec {
namespace {

// --- messages: a length, then that many bytes

bool send_bytes(int socket, const void* bytes, std::size_t count) {
  const auto* next = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t sent = send(socket, next, count, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    next += sent;
    count -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool receive_bytes(int socket, void* bytes, std::size_t count) {
  auto* next = static_cast<char*>(bytes);
  while (count > 0) {
    const ssize_t received = recv(socket, next, count, 0);
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) return false;
    next += received;
    count -= static_cast<std::size_t>(received);
  }
  return true;
}

bool send_text(int socket, const std::string& text) {
  const std::uint64_t size = text.size();
  return send_bytes(socket, &size, sizeof size) && send_bytes(socket, text.data(), text.size());
}

bool receive_text(int socket, std::string& text) {
  std::uint64_t size = 0;
  if (!receive_bytes(socket, &size, sizeof size)) return false;
  text.resize(size);
  return receive_bytes(socket, text.data(), size);
}

constexpr char kCompiled = 'c', kRefused = 'r';

bool send_module(int socket, const CompiledModule& module) {
  return send_bytes(socket, &kCompiled, 1) && send_text(socket, module.ptx) && send_text(socket, module.cubin) &&
         send_text(socket, module.log);
}

bool send_refusal(int socket, const Error::Parts& parts) {
  return send_bytes(socket, &kRefused, 1) && send_text(socket, parts.what) && send_text(socket, parts.found) &&
         send_text(socket, parts.expected) && send_text(socket, parts.hint);
}

// Waits until the child answers or has ended. Throws if a limit of this thread's budget is exceeded.
void wait_for_answer(int socket) {
  constexpr int kMillisecondsBetweenLooks = 5;
  Budget* const budget = current_budget();
  if (!budget || !budget->is_limited()) return;
  pollfd answer{.fd = socket, .events = POLLIN, .revents = 0};
  while (poll(&answer, 1, kMillisecondsBetweenLooks) <= 0) budget->require();
}

// False if the child has ended. Throws the error that the child reports.
bool receive_module(int socket, CompiledModule& module) {
  char answer = 0;
  if (!receive_bytes(socket, &answer, 1)) return false;
  if (answer == kCompiled)
    return receive_text(socket, module.ptx) && receive_text(socket, module.cubin) && receive_text(socket, module.log);
  Error::Parts parts;
  if (!receive_text(socket, parts.what) || !receive_text(socket, parts.found) ||
      !receive_text(socket, parts.expected) || !receive_text(socket, parts.hint))
    return false;
  throw Error(ErrorKind::kEnvironment, parts);
}

// --- the child

// Makes the child independent of the parent: no inherited descriptors, handlers or core files.
void leave_parent(int& socket, int said, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(signal, SIG_DFL);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  // The socket's own number may be below 4.
  const int kept = fcntl(socket, F_DUPFD, 4), kept_said = fcntl(said, F_DUPFD, 4);
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  dup2(kept_said, STDOUT_FILENO);
  dup2(kept_said, STDERR_FILENO);
  dup2(kept, 3);
  constexpr unsigned kMostKnown = 65536;  // for kernels without close_range
  if (close_range(4, ~0u, 0) != 0)
    for (unsigned file = 4; file < kMostKnown; ++file) close(static_cast<int>(file));
  socket = 3;
}

[[noreturn]] void serve(const Nvrtc& nvrtc, int socket) {
  std::string source, arch;
  CubinUse cubin{};
  while (receive_text(socket, source) && receive_text(socket, arch) && receive_bytes(socket, &cubin, sizeof cubin)) {
    bool sent = false;
    try {
      sent = send_module(socket, nvrtc.compile(source, "out.cu", arch, cubin));
    } catch (const Error& error) {
      sent = send_refusal(socket, error.parts());
    } catch (const std::exception&) {
      break;  // out of memory: the parent reports it
    }
    if (!sent) break;
  }
  _exit(0);
}

std::string last_line(int file) {
  constexpr std::size_t kMost = 2000;
  const off_t size = lseek(file, 0, SEEK_END);
  std::string text(std::min<std::size_t>(kMost, size > 0 ? static_cast<std::size_t>(size) : 0), '\0');
  const ssize_t got = pread(file, text.data(), text.size(), size - static_cast<off_t>(text.size()));
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\0')) text.pop_back();
  const std::size_t line = text.rfind('\n');
  return line == std::string::npos ? text : text.substr(line + 1);
}

}  // namespace

NvrtcProcess::NvrtcProcess(const Nvrtc& nvrtc) : nvrtc_(nvrtc) {}

NvrtcProcess::~NvrtcProcess() {
  if (child_ != -1) end();
}

void NvrtcProcess::start() {
  int sockets[2] = {-1, -1};
  said_ = memfd_create("nvrtc", MFD_CLOEXEC);
  const bool connected = said_ != -1 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) == 0;
  // Signals to the parent must not interrupt the child.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t parent = getpid();
  child_ = connected ? fork() : -1;
  const int failed = errno;
  if (child_ == 0) {
    leave_parent(sockets[1], said_, parent);
    serve(nvrtc_, sockets[1]);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (sockets[1] != -1) close(sockets[1]);
  socket_ = sockets[0];
  if (child_ != -1) return;
  end();
  throw Error(ErrorKind::kEnvironment, {.what = "no process can be started for NVRTC", .found = std::strerror(failed)});
}

std::string NvrtcProcess::end() {
  if (socket_ != -1) close(socket_);  // a waiting child takes this as its end
  int status = 0;
  pid_t ended = -1;
  if (child_ != -1) do {
      ended = waitpid(child_, &status, 0);
    } while (ended == -1 && errno == EINTR);
  std::string what = "its process ended";
  // If the program reaps its children elsewhere, the status is unknown.
  if (ended == child_ && WIFSIGNALED(status))
    what = fmt::format("signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  if (said_ != -1) {
    if (const std::string line = last_line(said_); !line.empty()) what += ": " + line;
    close(said_);
  }
  child_ = socket_ = said_ = -1;
  return what;
}

CompiledModule NvrtcProcess::compile(const std::string& source, const std::string& arch, CubinUse cubin) {
  if (child_ == -1) start();
  CompiledModule module;
  const bool is_sent =
      send_text(socket_, source) && send_text(socket_, arch) && send_bytes(socket_, &cubin, sizeof cubin);
  try {
    if (is_sent) wait_for_answer(socket_);
  } catch (const Error&) {
    kill(child_, SIGKILL);
    end();
    throw;
  }
  if (is_sent && receive_module(socket_, module)) return module;
  throw Error(ErrorKind::kEnvironment, {.what = "NVRTC ended before it had compiled the source (" + arch + ")",
                                        .found = end(),
                                        .hint = "it may need more memory than there is (ulimit -v)"});
}

}  // namespace fusec
