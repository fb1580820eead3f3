#include "fuzz/input_pipe.h"

#include <unistd.h>

#include <stdexcept>

namespace fusec::fuzzing {

InputPipe::InputPipe(std::string_view bytes) {
  int ends[2];
  if (bytes.size() > kMost || ::pipe(ends) != 0) throw std::runtime_error("no pipe for the input");
  const ssize_t written = ::write(ends[1], bytes.data(), bytes.size());
  ::close(ends[1]);
  descriptor_ = ends[0];
  if (written != static_cast<ssize_t>(bytes.size())) throw std::runtime_error("the pipe does not take the input");
}

InputPipe::~InputPipe() {
  ::close(descriptor_);
}

std::string InputPipe::path() const {
  return "/dev/fd/" + std::to_string(descriptor_);
}

}  // namespace fusec::fuzzing
