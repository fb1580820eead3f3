// Caches results on disk, one file each: NVRTC's, so that the same source is compiled once, and those of whole
// compilations (src/kept_result.h).
//
// An entry is named by the SHA-256 of its inputs. It holds that key, its parts with their lengths, and a checksum. An
// entry counts as absent if any of this does not match, or if others than the user and root can write the file; the
// work is then done again. Entries are written atomically (ir/new_file). If the folder exceeds its size limit,
// the least recently used files are removed.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fusec {

class CompileCache {
 public:
  // Creates `folder` if it does not exist; "" means no cache. Throws Error(kEnvironment) if others can write to it.
  CompileCache(std::string folder, std::uint64_t most_bytes);
  ~CompileCache();
  CompileCache(const CompileCache&) = delete;
  CompileCache& operator=(const CompileCache&) = delete;

  // `input` is everything that the result depends on. Both functions are thread-safe.
  std::optional<std::vector<std::string>> find(const std::string& input) const;
  // A failed write is no error: the next run does the work again.
  void keep(const std::string& input, std::span<const std::string_view> parts);

 private:
  void open_folder();

  std::string folder_;
  std::uint64_t most_bytes_;
  int directory_ = -1;  // file descriptor of the open folder
  std::mutex mutex_;    // guards added_ and writes
  std::uint64_t added_ = 0;
};

// The entries in a folder and the bytes that they take on disk.
struct CacheUse {
  std::size_t entries = 0;
  std::uint64_t bytes = 0;
};
CacheUse cache_use(const std::string& folder);

// Removes entries, the least recently used first, until the rest takes at most `most_bytes`. Returns what it removed.
CacheUse prune_cache(const std::string& folder, std::uint64_t most_bytes);

// Makes the folder, and tells why nothing can be kept in it, such as "Read-only file system"; "" if it can.
std::string why_not_usable(const std::string& folder);

// Why others could put files into the folder, such as "mode 0777, owner 0". "" if they cannot, or if the folder does
// not exist.
std::string why_not_private(const std::string& folder);

// $XDG_CACHE_HOME/fusec, else ~/.cache/fusec, else "". Relative paths count as unset.
std::string default_cache_directory();

}  // namespace fusec
