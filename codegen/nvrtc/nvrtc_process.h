// Runs NVRTC in a child process.
//
// While NVRTC compiles, it replaces the SIGINT and SIGTERM handlers with ones that end the process with status 4, and
// it aborts if memory runs out. In a child process neither affects the process that uses the library: its handlers
// stay, and an abort becomes an Error.
#pragma once

#include <memory>
#include <string>

#include "codegen/nvrtc/nvrtc.h"

namespace fusec {

// A child process that compiles one source after another. It starts on first use, restarts after it died, and ends with
// this object or with the thread that uses it. Not thread-safe: each thread has its own.
class NvrtcProcess {
 public:
  explicit NvrtcProcess(const Nvrtc& nvrtc);
  ~NvrtcProcess();
  NvrtcProcess(const NvrtcProcess&) = delete;
  NvrtcProcess& operator=(const NvrtcProcess&) = delete;

  // Same contract as Nvrtc::compile. Ends the child if this thread's budget is exceeded meanwhile.
  CompiledModule compile(const std::string& source, const std::string& arch, CubinUse cubin);

 private:
  void start();
  // Waits until the child ends. Returns how it ended and what it printed.
  std::string end();

  const Nvrtc& nvrtc_;
  int child_ = -1;   // process id
  int socket_ = -1;  // connected to the child
  int said_ = -1;    // file with the child's standard output and error
};

}  // namespace fusec
