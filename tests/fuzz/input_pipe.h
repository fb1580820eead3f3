// An input as a file that fusec opens by its path. It is a pipe: its bytes then lie in a heap block of their exact
// size, where the address sanitizer sees every read beyond the end. (A mapped file hides those up to the page's end.)
#pragma once

#include <string>
#include <string_view>

namespace fusec::fuzzing {

class InputPipe {
 public:
  static constexpr std::size_t kMost = 65536;  // what a pipe holds without a reader

  explicit InputPipe(std::string_view bytes);  // at most kMost
  ~InputPipe();
  InputPipe(const InputPipe&) = delete;
  InputPipe& operator=(const InputPipe&) = delete;

  std::string path() const;  // can be read once

 private:
  int descriptor_ = -1;
};

}  // namespace fusec::fuzzing
