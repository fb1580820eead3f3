// A stand-in of NVRTC for tests of what lies around it: quick, its results a function of the source and the options.
//
// STAND_IN_LOG=FILE: a line "loaded" when the library is loaded, and a line "compiled by PROCESS" for each source.
// STAND_IN_ABORT=1: a compilation ends as the real one does where memory runs out. STAND_IN_MS=N: it takes so long. As
// the real one does, it replaces the handlers of SIGINT and SIGTERM for that time by one that exits with 4.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

struct Program {
  std::string source, ptx, cubin;
};

void note(const std::string& line) {
  const char* const path = std::getenv("STAND_IN_LOG");
  const int file = path ? open(path, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
  if (file == -1) return;
  [[maybe_unused]] const ssize_t written = write(file, line.data(), line.size());  // a full disk is no concern here
  close(file);
}

[[gnu::constructor]] void loaded() {
  note("loaded\n");
}

void exit_with_4(int) {
  _exit(4);
}

int give(const std::string& text, char* place) {
  std::memcpy(place, text.data(), text.size());
  return 0;
}

}  // namespace

extern "C" {

int nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return 0;
}
int nvrtcGetNumSupportedArchs(int* count) {
  *count = 2;
  return 0;
}
int nvrtcGetSupportedArchs(int* list) {
  list[0] = 80;
  list[1] = 90;
  return 0;
}
int nvrtcCreateProgram(Program** program, const char* source, const char*, int, const char* const*,
                       const char* const*) {
  *program = new Program{source, "", ""};
  return 0;
}
int nvrtcDestroyProgram(Program** program) {
  delete *program;
  *program = nullptr;
  return 0;
}
int nvrtcCompileProgram(Program* program, int count, const char* const* options) {
  note("compiled by " + std::to_string(getpid()) + "\n");
  void (*const interrupt)(int) = std::signal(SIGINT, exit_with_4);
  void (*const terminate)(int) = std::signal(SIGTERM, exit_with_4);
  if (std::getenv("STAND_IN_ABORT")) {
    std::fputs("LLVM ERROR: out of memory\n", stderr);
    std::abort();
  }
  if (const char* const time = std::getenv("STAND_IN_MS")) usleep(1000u * std::strtoul(time, nullptr, 10));
  std::uint64_t hash = 0xcbf29ce484222325ull;
  const auto add = [&hash](const std::string& text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  };
  add(program->source);
  for (int i = 0; i < count; ++i) add(options[i]);
  char line[64];
  std::snprintf(line, sizeof line, "// of %016llx\n", static_cast<unsigned long long>(hash));
  for (int i = 0; i < 400; ++i) program->ptx += line;
  program->cubin = "cubin " + program->ptx;
  std::signal(SIGINT, interrupt);
  std::signal(SIGTERM, terminate);
  return 0;
}
int nvrtcGetProgramLogSize(Program*, std::size_t* size) {
  *size = 1;
  return 0;
}
int nvrtcGetProgramLog(Program*, char* log) {
  *log = 0;
  return 0;
}
int nvrtcGetPTXSize(Program* program, std::size_t* size) {
  *size = program->ptx.size();
  return 0;
}
int nvrtcGetPTX(Program* program, char* ptx) {
  return give(program->ptx, ptx);
}
int nvrtcGetCUBINSize(Program* program, std::size_t* size) {
  *size = program->cubin.size();
  return 0;
}
int nvrtcGetCUBIN(Program* program, char* cubin) {
  return give(program->cubin, cubin);
}
}
