// Caches NVRTC's results on disk, one file each, so that the same source is compiled once.
//
// An entry is named by the SHA-256 of its inputs. It holds that key, its parts with their lengths, and a checksum. An
// entry counts as absent if any of this does not match, or if others than the user and root can write the file; the
// source is then compiled again. Entries are written atomically (ir/new_file). If the folder exceeds its size limit,
// the least recently used files are removed.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "codegen/nvrtc/nvrtc.h"

namespace fusec {

class CompileCache {
 public:
  // Creates `folder` if it does not exist; "" means no cache. Throws Error(kEnvironment) if others can write to it.
  CompileCache(std::string folder, std::uint64_t most_bytes);
  ~CompileCache();
  CompileCache(const CompileCache&) = delete;
  CompileCache& operator=(const CompileCache&) = delete;

  // `input` is everything that the result depends on. Both functions are thread-safe.
  bool find(const std::string& input, CompiledModule& module) const;
  // A failed write is no error: the next run compiles again.
  void keep(const std::string& input, const CompiledModule& module);

 private:
  void open_folder();
  void remove_oldest() const;

  std::string folder_;
  std::uint64_t most_bytes_;
  int directory_ = -1;  // file descriptor of the open folder
  std::mutex mutex_;    // guards added_ and writes
  std::uint64_t added_ = 0;
};

// Why others could put files into the folder, such as "mode 0777, owner 0". "" if they cannot, or if the folder does
// not exist.
std::string why_not_private(const std::string& folder);

// $XDG_CACHE_HOME/fusec, else ~/.cache/fusec, else "". Relative paths count as unset.
std::string default_cache_directory();

}  // namespace fusec
