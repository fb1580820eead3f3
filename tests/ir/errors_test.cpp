// tests/errors: every NNN-what.json is a malformed model, and the first line of NNN-what.error says so. What the
// program adds to it, and how the files are written anew, is tests/check_errors.py's.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "ir/error.h"
#include "ir/read.h"

namespace fusec {
namespace {

const std::string kFolder = FUSEC_TESTS_DIR "/errors";

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// The message, or "" where the model is accepted.
std::string message_of(const std::string& text, const std::string& file, const std::string& directory = kFolder) {
  try {
    read_model_text(text, file, directory);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kInput);
    return error.what();
  }
  return "";
}

std::vector<std::string> malformed_models() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder))
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

TEST_CASE("every malformed model has its message") {
  const std::vector<std::string> names = malformed_models();
  CHECK(names.size() >= 120);
  for (const std::string& name : names) {
    CAPTURE(name);
    const std::string path = kFolder + "/" + name;
    const std::string message = message_of(contents(path + ".json"), name + ".json");
    CHECK(message != "");
    CHECK(message.starts_with(name + ".json"));
    CHECK(message.find_first_of("\n\r\x1b") == std::string::npos);
    const std::string expected = contents(path + ".error");
    CHECK(message == expected.substr(0, expected.find('\n')));
  }
}

TEST_CASE("no expected message without its model") {
  for (const auto& entry : std::filesystem::directory_iterator(kFolder))
    if (entry.path().extension() == ".error")
      CHECK(std::filesystem::exists(std::filesystem::path(entry.path()).replace_extension(".json")));
}

}  // namespace fusec
