// A file that appears under its name only when it is complete.
//
// Until place() the file has no name if the file system allows that (O_TMPFILE), so nothing remains of it however the
// process ends. Otherwise it has an unpredictable name beside the target, and the destructor removes it.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace fusec {

class NewFile {
 public:
  // `name` is relative to the open folder `folder` (AT_FDCWD: the working directory).
  NewFile(int folder, std::string name, mode_t mode);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  // The first error, an errno value; 0 without an error. After an error, write() and place() do nothing.
  int error() const { return error_; }
  void write(std::string_view bytes);
  // Gives the file its name, replacing a file of that name. Returns false, with error() set, on failure.
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

// An unpredictable file name: `prefix` and 16 hexadecimal digits.
std::string unforeseen_name(const std::string& prefix);

// A file or folder that should not outlive the process: remove_unfinished_files() removes it while this object lives. Of
// more than some dozens at a time, the later ones are not noted.
class UnfinishedPath {
 public:
  explicit UnfinishedPath(std::string path);
  ~UnfinishedPath();
  UnfinishedPath(const UnfinishedPath&) = delete;
  UnfinishedPath& operator=(const UnfinishedPath&) = delete;

 private:
  std::string path_;
};

// Removes unfinished NewFile files that have a name in the working directory or an absolute path, and the files and
// empty folders of UnfinishedPath objects. For signal handlers of a program that is about to end.
void remove_unfinished_files() noexcept;

}  // namespace fusec
