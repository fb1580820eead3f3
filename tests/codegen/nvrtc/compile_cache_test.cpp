#include "codegen/nvrtc/compile_cache.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "ir/error.h"

namespace fs = std::filesystem;
using namespace fusec;

namespace {

constexpr std::uint64_t kPlenty = 1 << 30;

class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "fusec-cache-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()));
    path = pattern;
  }
  ~Folder() { fs::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  fs::path only_entry() const {
    std::vector<fs::path> all;
    for (const auto& entry : fs::directory_iterator(path)) all.push_back(entry.path());
    REQUIRE(all.size() == 1);
    return all[0];
  }
  std::size_t count() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(path), fs::directory_iterator()));
  }

  fs::path path;
};

std::string content_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// In place, so that owner and mode stay.
void overwrite(const fs::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

const std::vector<std::string> kParts = {"ptx text\n", std::string("cubin\0bytes", 11), "", "a warning"};
const std::vector<std::string_view> kViews(kParts.begin(), kParts.end());

bool finds(const Folder& folder, const std::string& input) {
  const auto parts = CompileCache(folder.path, kPlenty).find(input);
  if (!parts) return false;
  CHECK(*parts == kParts);
  return true;
}

void keep(const Folder& folder, const std::string& input) {
  CompileCache(folder.path, kPlenty).keep(input, kViews);
}

}  // namespace

TEST_SUITE("compile cache") {
  TEST_CASE("what is kept is found, by its whole input, in files that only the user can read") {
    const Folder folder;
    keep(folder, "source");
    CHECK(finds(folder, "source"));
    CHECK_FALSE(finds(folder, "sourc"));
    CHECK_FALSE(finds(folder, "source "));
    struct stat file {};
    REQUIRE(stat(folder.only_entry().c_str(), &file) == 0);
    CHECK((file.st_mode & 07777) == 0600);
  }

  TEST_CASE("an entry with any bit changed, cut anywhere, or longer is not believed") {
    const Folder folder;
    keep(folder, "source");
    const fs::path entry = folder.only_entry();
    const std::string good = content_of(entry);
    std::size_t believed = 0;
    for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
      std::string changed = good;
      changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ 1 << bit % 8);
      overwrite(entry, changed);
      believed += finds(folder, "source");
    }
    for (std::size_t size = 0; size < good.size(); ++size) {
      overwrite(entry, good.substr(0, size));
      believed += finds(folder, "source");
    }
    overwrite(entry, good + "x");
    believed += finds(folder, "source");
    CHECK(believed == 0);
    // What is compiled again takes the place of the damaged entry.
    keep(folder, "source");
    CHECK(finds(folder, "source"));
  }

  TEST_CASE("an entry is not believed under the name of another, nor a file that others could have written") {
    const Folder folder, other;
    keep(folder, "source");
    keep(other, "another source");
    const fs::path entry = folder.only_entry();
    overwrite(entry, content_of(other.only_entry()));
    CHECK_FALSE(finds(folder, "source"));
    keep(folder, "source");
    chmod(entry.c_str(), 0620);
    CHECK_FALSE(finds(folder, "source"));
    chmod(entry.c_str(), 0602);
    CHECK_FALSE(finds(folder, "source"));
    chmod(entry.c_str(), 0600);
    CHECK(finds(folder, "source"));
    fs::rename(entry, other.path / "moved");
    fs::create_symlink(other.path / "moved", entry);
    CHECK_FALSE(finds(folder, "source"));
    fs::remove(entry);
    REQUIRE(mkfifo(entry.c_str(), 0600) == 0);  // which must not be waited for
    CHECK_FALSE(finds(folder, "source"));
    if (geteuid() != 0) return;
    fs::remove(entry);
    keep(folder, "source");
    REQUIRE(chown(entry.c_str(), 12345, 12345) == 0);
    CHECK_FALSE(finds(folder, "source"));
  }

  TEST_CASE("a folder that others can write to is refused") {
    const Folder folder;
    for (const mode_t mode : {0777, 01777, 0770, 0702}) {
      chmod(folder.path.c_str(), mode);
      CHECK_THROWS_WITH_AS(CompileCache(folder.path, kPlenty), doctest::Contains("others can write"), Error);
      CHECK_FALSE(why_not_private(folder.path).empty());
    }
    chmod(folder.path.c_str(), 0755);
    CHECK(why_not_private(folder.path).empty());
    if (geteuid() != 0) return;
    REQUIRE(chown(folder.path.c_str(), 12345, 12345) == 0);
    CHECK_THROWS_WITH_AS(CompileCache(folder.path, kPlenty), doctest::Contains("owner 12345"), Error);
  }

  TEST_CASE("a folder is made private, and one that cannot be made is no error") {
    const Folder folder;
    const fs::path deep = folder.path / "a" / "b";
    CompileCache(deep, kPlenty).keep("source", kViews);
    struct stat made {};
    REQUIRE(stat(deep.c_str(), &made) == 0);
    CHECK((made.st_mode & 07777) == 0700);
    CompileCache nowhere("/proc/nowhere", kPlenty);
    nowhere.keep("source", kViews);
    CHECK_FALSE(nowhere.find("source").has_value());
  }

  TEST_CASE("beyond the limit the entries go that were not used for the longest time, and nothing else") {
    const Folder folder;
    overwrite(folder.path / "notes.txt", std::string(100000, 'x'));
    const std::uint64_t limit = 10 * 4096;
    for (int i = 0; i < 30; ++i) {
      CompileCache cache(folder.path, limit);
      cache.keep("source " + std::to_string(i), kViews);
      CHECK(cache.find("source 0").has_value());  // used all the time
    }
    CHECK(folder.count() == 11);
    CHECK(finds(folder, "source 0"));
    CHECK(finds(folder, "source 29"));
    CHECK_FALSE(finds(folder, "source 1"));
    CHECK(fs::exists(folder.path / "notes.txt"));
    // One entry alone that is larger is not kept.
    CompileCache(folder.path, 64).keep("large", kViews);
    CHECK_FALSE(finds(folder, "large"));
  }

  TEST_CASE("what is kept is counted, and pruned to a size") {
    const Folder folder;
    for (int i = 0; i < 5; ++i) keep(folder, "source " + std::to_string(i));
    // Others' files may be named by digests as well.
    const std::vector<fs::path> others = {folder.path / std::string(64, 'a'),
                                          folder.path / (std::string(32, 'b') + ".jpg")};
    for (const fs::path& other : others) overwrite(other, "not ours");
    CHECK(cache_use(folder.path).entries == 5);
    CHECK(cache_use(folder.path).bytes == 5 * 4096);
    CHECK(prune_cache(folder.path, 2 * 4096 + 100).entries == 3);
    CHECK(finds(folder, "source 4"));
    CHECK_FALSE(finds(folder, "source 0"));
    CHECK(prune_cache(folder.path, 0).bytes == 2 * 4096);
    CHECK(cache_use(folder.path).entries == 0);
    for (const fs::path& other : others) CHECK(fs::exists(other));
    CHECK(prune_cache("/proc/nowhere", 0).entries == 0);
  }

  TEST_CASE("what killed processes left goes after an hour") {
    const Folder folder;
    const fs::path old = folder.path / (std::string(64, 'a') + ".partial-0123"),
                   fresh = folder.path / (std::string(64, 'b') + ".partial-0123");
    overwrite(old, "x");
    overwrite(fresh, "x");
    fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(2));
    keep(folder, "source");
    CHECK_FALSE(fs::exists(old));
    CHECK(fs::exists(fresh));
  }

  TEST_CASE("no default folder counts from the working directory") {
    const auto with = [](const char* cache, const char* home) {
      cache ? setenv("XDG_CACHE_HOME", cache, 1) : unsetenv("XDG_CACHE_HOME");
      home ? setenv("HOME", home, 1) : unsetenv("HOME");
      return default_cache_directory();
    };
    const auto value = [](const char* name) { return std::string(std::getenv(name) ? std::getenv(name) : ""); };
    const std::string cache = value("XDG_CACHE_HOME"), home = value("HOME");
    CHECK(with("/c", "/h") == "/c/fusec");
    CHECK(with("c", "/h") == "/h/.cache/fusec");
    CHECK(with("", "/h") == "/h/.cache/fusec");
    CHECK(with(nullptr, "relative") == "");
    CHECK(with("./c", "") == "");
    CHECK(with(nullptr, nullptr) == "");
    with(cache.empty() ? nullptr : cache.c_str(), home.empty() ? nullptr : home.c_str());
  }
}
