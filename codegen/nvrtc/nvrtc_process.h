// NVRTC in a process of its own.
//
// While NVRTC compiles it replaces the handlers of SIGINT and SIGTERM, which then end the process with status 4; where
// memory runs out it aborts. In a child neither reaches the process that uses the library: its handlers stay, and an
// abort is an Error.
#pragma once

#include <memory>
#include <string>

#include "codegen/nvrtc/nvrtc.h"

namespace fusec {

// A child that compiles one source after another. It is started when it is first needed, and again after it died, and
// ends with this object or with the thread that uses it. Not thread-safe: a thread has one of its own.
class NvrtcProcess {
 public:
  explicit NvrtcProcess(const Nvrtc& nvrtc);
  ~NvrtcProcess();
  NvrtcProcess(const NvrtcProcess&) = delete;
  NvrtcProcess& operator=(const NvrtcProcess&) = delete;

  // As Nvrtc::compile. Ends the child where a limit of this thread's budget is exceeded meanwhile.
  CompiledModule compile(const std::string& source, const std::string& arch, CubinUse cubin);

 private:
  void start();
  // Waits for the child's end; what it was, and what the child said.
  std::string end();

  const Nvrtc& nvrtc_;
  int child_ = -1;   // process id
  int socket_ = -1;  // to the child
  int said_ = -1;    // a file with what it wrote to standard output and error
};

}  // namespace fusec
