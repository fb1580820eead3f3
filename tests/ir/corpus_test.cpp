// Every graph of the corpus is read, and what its `_dec` entries declare agrees with inference.
#include "support/corpus.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "ir/read.h"

namespace fusec {
namespace {

void read_all(const std::string& folder, std::size_t at_least) {
  const std::vector<std::string> paths = corpus_graphs(folder);
  CHECK(paths.size() >= at_least);
  for (const std::string& path : paths) {
    CAPTURE(path);
    CHECK_NOTHROW(read_model(path));
  }
}

}  // namespace

TEST_CASE("the partition corpus is read") {
  read_all(FUSEC_TESTS_DIR "/corpus/partition", 537);
}

TEST_CASE("the model corpus is read") {
  read_all(FUSEC_TESTS_DIR "/corpus/models", 328);
}

}  // namespace fusec
