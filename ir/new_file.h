// A file that takes its name whole or not at all.
//
// Until it is placed the file has no name where the file system allows that (O_TMPFILE), so nothing is left of it
// however the process ends. Elsewhere it has an unpredictable name beside the target and is removed when it is given
// up.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace fusec {

class NewFile {
 public:
  // `name` counts from the open folder `folder` (AT_FDCWD: the working directory).
  NewFile(int folder, std::string name, mode_t mode);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  // The first error, as errno has it; 0 while all is well. After an error nothing more is written, and nothing placed.
  int error() const { return error_; }
  void write(std::string_view bytes);
  // Takes the name, in place of the file that has it. False, with error() set, where that fails.
  bool place();

 private:
  bool fail(int error);
  bool open_without_name(mode_t mode);
  void open_with_name(mode_t mode);
  bool link_as(const std::string& name) const;

  int folder_;
  std::string name_;
  std::string temporary_;  // "" while the file has no name
  int file_ = -1;
  int error_ = 0;
};

// A name beside others that nobody can foresee: `prefix` and 16 hexadecimal digits.
std::string unforeseen_name(const std::string& prefix);

// Removes the files that NewFile has under way with a name in the working directory or by an absolute path. For signal
// handlers of a program that is about to end.
void remove_unfinished_files() noexcept;

}  // namespace fusec
