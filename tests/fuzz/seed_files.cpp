#include "fuzz/seed_files.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace fusec::fuzzing {
namespace {

const std::filesystem::path kRoot = std::filesystem::path(FUSEC_TESTS_DIR).parent_path();

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

std::vector<std::string> files_of(const std::string& folder, std::string_view suffix, std::size_t most) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(kRoot / folder))
    if (entry.path().string().ends_with(suffix) && entry.file_size() <= most) paths.push_back(entry.path());
  std::ranges::sort(paths);
  std::vector<std::string> contents;
  for (const std::filesystem::path& path : paths) contents.push_back(text_of(path));
  return contents;
}

std::string file_text(const std::string& path) {
  return text_of(kRoot / path);
}

}  // namespace fusec::fuzzing
