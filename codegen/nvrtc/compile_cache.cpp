#include "codegen/nvrtc/compile_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string_view>
#include <vector>

#include "ir/error.h"
#include "ir/new_file.h"
#include "ir/sha256.h"

namespace fusec {
namespace {

constexpr std::string_view kFormat = "fusec compiled 3\n";
constexpr std::size_t kDigest = 32;

// --- an entry: format, key, the number of parts, their lengths, the parts, checksum

void append_number(std::string& entry, std::uint64_t number) {
  entry.append(reinterpret_cast<const char*>(&number), sizeof number);
}

// Takes a number from the front. False if none is left.
bool take_number(std::string_view& rest, std::uint64_t& number) {
  if (rest.size() < sizeof number) return false;
  std::memcpy(&number, rest.data(), sizeof number);
  rest.remove_prefix(sizeof number);
  return true;
}

std::string entry_of(const std::string& key, std::span<const std::string_view> parts) {
  std::string entry = std::string(kFormat) + key;
  append_number(entry, parts.size());
  for (const std::string_view part : parts) append_number(entry, part.size());
  for (const std::string_view part : parts) entry += part;
  return entry + sha256(entry);
}

std::optional<std::vector<std::string>> read_entry(std::string_view entry, const std::string& key) {
  const std::string beginning = std::string(kFormat) + key;
  if (entry.size() < beginning.size() + kDigest || !entry.starts_with(beginning)) return std::nullopt;
  const std::string_view checked = entry.substr(0, entry.size() - kDigest);
  if (sha256(checked) != entry.substr(checked.size())) return std::nullopt;
  std::string_view rest = checked.substr(beginning.size());
  std::uint64_t count = 0;
  if (!take_number(rest, count) || count > rest.size() / sizeof count) return std::nullopt;
  std::string_view content = rest.substr(count * sizeof count);
  std::vector<std::string> parts;
  for (std::uint64_t i = 0, size = 0; i < count; ++i) {
    if (!take_number(rest, size) || size > content.size()) return std::nullopt;
    parts.emplace_back(content.substr(0, size));
    content.remove_prefix(size);
  }
  return content.empty() ? std::optional(std::move(parts)) : std::nullopt;
}

std::string hexadecimal(const std::string& bytes) {
  std::string digits;
  for (const char byte : bytes) digits += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return digits;
}

// --- files

class OpenFile {
 public:
  explicit OpenFile(int file) : file_(file) {}
  ~OpenFile() {
    if (file_ != -1) close(file_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int number() const { return file_; }

 private:
  int file_;
};

constexpr std::string_view kFormatOfAnyVersion = "fusec compiled ";

// Whether a name is 64 digits, or 32 as in earlier versions; `end` gets what follows them.
bool begins_with_digest(std::string_view name, std::string_view& end) {
  const std::size_t digits = std::min(name.find_first_not_of("0123456789abcdef"), name.size());
  end = name.substr(digits);
  return digits == 32 || digits == 64;
}

// True for an entry, by its name and its first bytes, and for what a killed process left of one. The cache touches no
// other files of the folder.
bool is_ours(int directory, const std::string& name) {
  std::string_view end;
  if (!begins_with_digest(name, end)) return false;
  if (!end.empty()) return end.starts_with(".partial-");
  const OpenFile file(openat(directory, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  char begin[kFormatOfAnyVersion.size()] = {};
  return file.number() != -1 && read(file.number(), begin, sizeof begin) == static_cast<ssize_t>(sizeof begin) &&
         std::string_view(begin, sizeof begin) == kFormatOfAnyVersion;
}

bool only_user_writes(const struct stat& file) {
  return (file.st_uid == geteuid() || file.st_uid == 0) && (file.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

std::string why_shared(const struct stat& folder) {
  if (only_user_writes(folder)) return "";
  return fmt::format("mode {:04o}, owner {}", folder.st_mode & 07777, folder.st_uid);
}

std::uint64_t bytes_on_disk(const struct stat& file) {
  constexpr std::uint64_t kUnit = 4096;
  return (static_cast<std::uint64_t>(file.st_size) + kUnit - 1) / kUnit * kUnit;
}

// Reads a whole file. False unless only the user (or root) can have written it and it is at most as large as the cache.
bool read_private(int directory, const std::string& name, std::uint64_t most_bytes, std::string& content) {
  const OpenFile file(openat(directory, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat found {};
  if (file.number() == -1 || fstat(file.number(), &found) != 0) return false;
  if (!S_ISREG(found.st_mode) || !only_user_writes(found)) return false;
  if (static_cast<std::uint64_t>(found.st_size) > most_bytes) return false;
  content.resize(static_cast<std::size_t>(found.st_size));
  std::size_t have = 0;
  while (have < content.size()) {
    const ssize_t got = read(file.number(), content.data() + have, content.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    have += static_cast<std::size_t>(got);
  }
  futimens(file.number(), nullptr);  // marks it as recently used
  return true;
}

struct StoredFile {
  timespec used;
  std::uint64_t bytes;
  std::string name;
};

bool is_used_earlier(const StoredFile& a, const StoredFile& b) {
  if (a.used.tv_sec != b.used.tv_sec) return a.used.tv_sec < b.used.tv_sec;
  if (a.used.tv_nsec != b.used.tv_nsec) return a.used.tv_nsec < b.used.tv_nsec;
  return a.name < b.name;
}

std::vector<StoredFile> stored_files(int directory) {
  std::vector<StoredFile> files;
  const int again = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> list(again == -1 ? nullptr : fdopendir(again), closedir);
  if (!list) {
    if (again != -1) close(again);
    return files;
  }
  while (const dirent* entry = readdir(list.get())) {
    struct stat file {};
    if (fstatat(directory, entry->d_name, &file, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(file.st_mode)) continue;
    if (is_ours(directory, entry->d_name)) files.push_back({file.st_mtim, bytes_on_disk(file), entry->d_name});
  }
  return files;
}

// Removes the least recently used entries beyond `most_bytes`, and what killed processes left. Returns what it removed.
CacheUse remove_oldest(int directory, std::uint64_t most_bytes) {
  // Age in seconds after which a temporary file is taken to be a killed process' file.
  constexpr time_t kForgotten = 3600;
  std::vector<StoredFile> files = stored_files(directory);
  std::ranges::sort(files, is_used_earlier);
  std::uint64_t bytes = 0;
  for (const StoredFile& file : files) bytes += file.bytes;
  CacheUse removed;
  for (const StoredFile& file : files) {
    const bool left = file.name.find('.') != std::string::npos && file.used.tv_sec + kForgotten < time(nullptr);
    if (bytes <= most_bytes && !left) continue;
    if (unlinkat(directory, file.name.c_str(), 0) != 0 && errno != ENOENT) continue;
    bytes -= file.bytes;
    ++removed.entries, removed.bytes += file.bytes;
  }
  return removed;
}

// Returns errno of the last folder; 0 if it was made.
int make_folders(const std::string& path) {
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1))
    mkdir(path.substr(0, slash).c_str(), 0700);
  return mkdir(path.c_str(), 0700) == 0 ? 0 : errno;
}

std::string absolute(const char* variable) {
  const char* const value = std::getenv(variable);
  return value && *value == '/' ? value : "";
}

}  // namespace

CompileCache::CompileCache(std::string folder, std::uint64_t most_bytes)
    : folder_(std::move(folder)), most_bytes_(most_bytes) {
  if (!folder_.empty()) open_folder();
}

CompileCache::~CompileCache() {
  if (added_ > 0) remove_oldest(directory_, most_bytes_);
  if (directory_ != -1) close(directory_);
}

void CompileCache::open_folder() {
  make_folders(folder_);
  directory_ = open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  struct stat found {};
  if (directory_ == -1 || fstat(directory_, &found) != 0) return;
  const std::string why = why_shared(found);
  if (why.empty()) return;
  close(directory_);
  directory_ = -1;
  throw Error(ErrorKind::kEnvironment, {.file = folder_,
                                        .what = "others can write to the folder of the compile cache",
                                        .found = why,
                                        .expected = fmt::format("owner {} or 0, who alone can write", geteuid()),
                                        .hint = "chmod go-w, another --cache-dir, or --no-cache"});
}

std::optional<std::vector<std::string>> CompileCache::find(const std::string& input) const {
  if (directory_ == -1) return std::nullopt;
  const std::string key = sha256(input);
  std::string entry;
  if (!read_private(directory_, hexadecimal(key), most_bytes_, entry)) return std::nullopt;
  return read_entry(entry, key);
}

void CompileCache::keep(const std::string& input, std::span<const std::string_view> parts) {
  if (directory_ == -1) return;
  const std::string key = sha256(input), entry = entry_of(key, parts);
  if (entry.size() > most_bytes_) return;
  const std::lock_guard lock(mutex_);
  NewFile file(directory_, hexadecimal(key), 0600);
  file.write(entry);
  if (!file.place()) return;
  added_ += entry.size();
  // Other processes may be adding files too, so the folder is scanned regularly, and at the end.
  if (added_ <= most_bytes_ / 8) return;
  remove_oldest(directory_, most_bytes_);
  added_ = 0;
}

CacheUse cache_use(const std::string& folder) {
  const OpenFile directory(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  CacheUse use;
  if (directory.number() == -1) return use;
  for (const StoredFile& file : stored_files(directory.number())) ++use.entries, use.bytes += file.bytes;
  return use;
}

CacheUse prune_cache(const std::string& folder, std::uint64_t most_bytes) {
  const OpenFile directory(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return directory.number() == -1 ? CacheUse{} : remove_oldest(directory.number(), most_bytes);
}

std::string why_not_usable(const std::string& folder) {
  const int made = make_folders(folder);
  if (made != 0 && made != EEXIST) return std::strerror(made);
  const OpenFile directory(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const bool usable = directory.number() != -1 && access(folder.c_str(), W_OK | X_OK) == 0;
  return usable ? "" : std::strerror(errno);
}

std::string why_not_private(const std::string& folder) {
  struct stat found {};
  return stat(folder.c_str(), &found) == 0 ? why_shared(found) : "";
}

std::string default_cache_directory() {
  if (const std::string cache = absolute("XDG_CACHE_HOME"); !cache.empty()) return cache + "/fusec";
  if (const std::string home = absolute("HOME"); !home.empty()) return home + "/.cache/fusec";
  return "";
}

}  // namespace fusec
