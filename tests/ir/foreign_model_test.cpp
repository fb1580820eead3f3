// What is said of files in other formats by their names; tests/errors has those that are known by their content.
#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "ir/error.h"
#include "ir/read.h"

namespace fusec {
namespace {

std::string message_of(const std::string& text, const std::string& file) {
  try {
    read_model_text(text, file, "");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a file's name says which format it is in, where its content does not") {
  constexpr std::pair<const char*, const char*> kCases[] = {
      {"m.pt2", "python -m fusec import MODEL.pt2"},
      {"a/m.onnx", "python -m fusec import MODEL.onnx -o model.json"},
      {"m.py", "python -m fusec import MODULE.py:FACTORY"},
      {"m.pt", "python -m fusec import MODULE.py:FACTORY"},
      {"m.safetensors", "the .json file whose constants name it"},
  };
  for (const auto& [file, hint] : kCases)
    for (const char* text : {"", "import torch", "\xff\xfe"}) {
      const std::string message = message_of(text, file);
      CHECK(message.starts_with(std::string(file) + ": not a graph in fusec's JSON format: found "));
      CHECK(message.find(hint) != std::string::npos);
    }
  CHECK(message_of("import torch", "m.json").starts_with("m.json: not JSON at line 1, column 1"));
  CHECK(message_of("PK\x03\x04 an archive of something else", "m.json").starts_with("m.json: not JSON at line 1"));
}

TEST_CASE("a graph may have any file name") {
  const std::string model =
      R"({"fusec":1,"inputs":[{"name":"x","dtype":"int8","shape":[1]}],"nodes":[],"outputs":["x"]})";
  for (const char* file : {"m.onnx", "m.pt2", "m.py"}) CHECK(message_of(model, file).empty());
}

}  // namespace fusec
