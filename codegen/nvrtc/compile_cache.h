// NVRTC's results on disk, one file each, so that the same source is compiled once.
//
// An entry is named by the SHA-256 of what it was made from, holds that key, its parts with their lengths, and a
// checksum over all of it. What is not exactly so, or is not a file that only the user (or root) can write, is taken as
// absent: the source is compiled again. Entries appear whole or not at all (ir/new_file). Where the files of the folder
// exceed the limit together, those go that were not used for the longest time.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "codegen/nvrtc/nvrtc.h"

namespace fusec {

class CompileCache {
 public:
  // `folder` is made where there is none; "" is no cache. Throws Error(kEnvironment) where others can write to it.
  CompileCache(std::string folder, std::uint64_t most_bytes);
  ~CompileCache();
  CompileCache(const CompileCache&) = delete;
  CompileCache& operator=(const CompileCache&) = delete;

  // `input` is everything that the result depends on. Both may be called from several threads.
  bool find(const std::string& input, CompiledModule& module) const;
  // A cache that cannot be written is no error: the next run compiles again.
  void keep(const std::string& input, const CompiledModule& module);

 private:
  void open_folder();
  void remove_oldest() const;

  std::string folder_;
  std::uint64_t most_bytes_;
  int directory_ = -1;  // the open folder
  std::mutex mutex_;    // of added_, and of writing
  std::uint64_t added_ = 0;
};

// Why others could put files into the folder: "mode 0777, owner 0"; "" where they could not, or where there is no
// folder.
std::string why_not_private(const std::string& folder);

// $XDG_CACHE_HOME/fusec, else ~/.cache/fusec, else "". Paths that are not absolute count as unset.
std::string default_cache_directory();

}  // namespace fusec
