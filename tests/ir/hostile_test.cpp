// Inputs made to break a reader: huge names, deep nesting, truncations and mutations at every offset, names full of
// characters that mean something elsewhere.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "ir/error.h"
#include "ir/read.h"
#include "ir/safetensors.h"
#include "ir/spelling.h"
#include "ir/text.h"
#include "ir/write.h"

namespace fusec {
namespace {

// "" where the model is accepted; anything but an Error of the input fails the test.
std::string message_of(const std::string& text, const std::string& directory = "") {
  try {
    read_model_text(text, "m.json", directory);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kInput);
    CHECK(std::string(error.what()).size() < 4096);
    return error.what();
  }
  return "";
}

std::string repeated(const std::string& piece, std::size_t times) {
  std::string text;
  text.reserve(piece.size() * times);
  for (std::size_t i = 0; i < times; ++i) text += piece;
  return text;
}

// A model of one relu, whose parts can be replaced. Names are JSON strings.
std::string model(const std::string& name = "\"x\"", const std::string& shape = "[4]",
                  const std::string& op = "\"relu\"", const std::string& operand = "\"x\"",
                  const std::string& metadata = "null") {
  return fmt::format(
      R"({{"fusec":1,"symbols":{{"n":{{}},"m":{{}}}},"inputs":[{{"name":{},"dtype":"float32","shape":{}}},{{"name":"s","dtype":"bool","shape":["n","m"]}}],)"
      R"("nodes":[{{"name":"y","op":{},"inputs":[{}]}}],"outputs":["y"],"metadata":{}}})",
      name, shape, op, operand, metadata);
}

const std::string kMegabyte(1 << 20, 'a');

// Uses most of the format.
const std::string kRich =
    R"({"fusec": 1, "name": "rich", "symbols": {"n": {"min": 2, "max": 64, "multiple_of": 2, "hint": 8}},
 "inputs": [{"name": "x", "dtype": "float32", "shape": ["n", "2*n+1"]}, {"name": "q", "dtype": "int4", "shape": [2, 4]}],
 "constants": [{"name": "c", "dtype": "float16", "shape": [3], "data": [1, -2.5e0, "nan"]},
               {"name": "b", "dtype": "bool", "shape": [1], "data": [true]}],
 "nodes": [{"name": "s", "op": "split", "inputs": ["e"], "attrs": {"split_sizes": ["n", 1, "n"], "dim": -1}},
           {"name": "e", "op": "exp", "inputs": ["x"], "pattern": "elemwise", "fuse": false},
           {"name": "a", "op": "add", "inputs": ["s.0", 2], "outputs": [{"name": "A\u00e9\\", "dtype": "float32", "shape": ["n", "n"]}]},
           {"name": "k", "op": "my.op", "inputs": ["A\u00e9\\", null, {"dim": "n//2"}, 1.5], "outputs": [{"name": "k", "dtype": "bool", "shape": []}],
            "attrs": {"symbol": "launch", "z": {"q": [1, 2.0, "x"]}}}],
 "outputs": ["A\u00e9\\", "s.2", "k"], "metadata": {"anything": [null, true]}})";

}  // namespace

TEST_CASE("names of a megabyte") {
  const std::string name = "\"" + kMegabyte + "\"";
  CHECK(message_of(model(name, "[4]", "\"relu\"", name)) == "");
  const std::string clipped = "\"" + std::string(80, 'a') + "...\" (1048576 bytes)";
  CHECK(message_of(model("\"x\"", "[4]", "\"relu\"", name)) ==
        "m.json#/nodes/0/inputs/0: undefined operand: found " + clipped +
            ", expected the name of an input, a constant or a node's result");
  CHECK(message_of(model("\"x\"", "[4]", name)).find("unknown op: found " + clipped) != std::string::npos);
  CHECK(message_of(model("\"x\"", "[" + name + "]")) ==
        "m.json#/inputs/0/shape/0: a dimension is too complicated: found 1048576 characters, expected at most 4096 "
        "characters, 256 terms, degree 32 and 64 levels");
  CHECK(message_of("{\"fusec\":1," + name + ":1}") ==
        "m.json#/" + std::string(256, 'a') + "...: unknown key: found " + clipped +
            ", expected one of fusec, name, symbols, inputs, constants, nodes, outputs, aliases, metadata");
  CHECK(message_of("\"" + kMegabyte).starts_with("m.json: not JSON at line 1, column 1048578: found "));
}

TEST_CASE("nesting") {
  const auto nested = [](std::size_t depth, const char* open, const char* close, const char* inner = "") {
    return model("\"x\"", "[4]", "\"relu\"", "\"x\"", repeated(open, depth) + inner + repeated(close, depth));
  };
  CHECK(message_of(nested(255, "[", "]")) == "");
  CHECK(message_of(nested(256, "[", "]")) == "m.json#/metadata" + repeated("/0", 255) +
                                                 ": nested too deep: found more than 256 levels, expected at most 256");
  CHECK(message_of(nested(255, "{\"a\":", "}", "1")) == "");
  CHECK(message_of(nested(1000000, "{\"a\":", "}", "1")).find("nested too deep") != std::string::npos);
  CHECK(message_of(std::string(1000000, '[')).find("nested too deep") != std::string::npos);
  CHECK(message_of(model("\"x\"", "[\"" + std::string(2000, '(') + "\"]")).find("too complicated") !=
        std::string::npos);
  CHECK(message_of(model("\"x\"", "[\"" + std::string(2000, '-') + "n\"]")).find("too complicated") !=
        std::string::npos);
}

TEST_CASE("expressions that would grow without bound") {
  const auto too_complicated = [](const std::string& dim) {
    CHECK(message_of(model("\"x\"", "[\"" + dim + "\"]")).find("too complicated") != std::string::npos);
  };
  too_complicated("n" + repeated("*n", 1000));
  too_complicated("1" + repeated("*(n+m+1)", 400));
  too_complicated("1" + repeated("*(n//3+m//5+n%7+1)", 200));
  // Dimensions that are small one by one and whose product is not.
  const std::string shape = repeated("\"n+m+n*m+n//2+m//2+1\",", 40) + "1";
  CHECK(message_of(model("\"x\"", "[" + shape + "]")).find("too complicated") != std::string::npos);
}

TEST_CASE("a model cut off anywhere is refused") {
  CHECK(message_of(kRich) == "");
  for (std::size_t length = 0; length < kRich.size(); ++length) {
    CAPTURE(length);
    CHECK(message_of(kRich.substr(0, length)) != "");
  }
}

TEST_CASE("a model changed anywhere is read or refused") {
  std::mt19937 random(20240607);
  const std::string alphabet = "{}[]\",:0123456789-.eE truefalsn\\u/*+%()x\x01\x80\xff";
  for (int i = 0; i < 20000; ++i) {
    std::string text = kRich;
    for (unsigned changes = 1 + random() % 3; changes > 0; --changes) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = alphabet[random() % alphabet.size()];
          break;
        case 1:
          text.erase(at, 1 + random() % 8);
          break;
        case 2:
          text.insert(at, 1, alphabet[random() % alphabet.size()]);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 40));
      }
      if (text.empty()) break;
    }
    CAPTURE(text);
    message_of(text);
  }
}

TEST_CASE("names may hold anything") {
  const std::vector<std::string> names = {"a \"quoted\" name",
                                          "two\nlines\r\n\ttab",
                                          "*/ ends a comment /*",
                                          "?\?/ ?\?= ?\?' trigraphs",
                                          "back\\slash\\",
                                          "// line",
                                          std::string("nul\0inside", 10),
                                          "\xf0\x9f\x98\x80 \xe2\x80\xa8 \xc3\xa9",
                                          "$(rm -rf) `x` %s {} ${y}",
                                          "return",
                                          "0",
                                          " ",
                                          "s.0",
                                          "~1/~0",
                                          "R\"(raw)\"",
                                          "\x7f\x1b[31m"};
  std::string nodes, outputs;
  std::string operand = "\"x\"";
  for (const std::string& name : names) {
    const std::string quoted_name = json_string(name);
    nodes +=
        (nodes.empty() ? "" : ",\n") + fmt::format(R"({{"name":{},"op":"neg","inputs":[{}]}})", quoted_name, operand);
    outputs += (outputs.empty() ? "" : ",") + quoted_name;
    operand = quoted_name;
  }
  const std::string text = fmt::format(
      R"({{"fusec":1,"name":{},"inputs":[{{"name":"x","dtype":"float32","shape":[4]}}],"nodes":[{}],"outputs":[{}]}})",
      json_string(names[0]), nodes, outputs);
  const Graph graph = read_model_text(text, "m.json", "");
  REQUIRE(graph.outputs.size() == names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    CHECK(graph.nodes[i].name == names[i]);
    CHECK(graph.value(graph.outputs[i]).name == names[i]);
    CHECK(graph.find_value(names[i]) == graph.outputs[i]);
  }
  const std::string printed = graph_text(graph);
  CHECK(graph_text(read_model_text(model_text(graph), "m.json", "")) == printed);
  CHECK(graph_text(parse_graph_text(printed)) == printed);
}

TEST_CASE("a long cycle is not listed whole") {
  std::string nodes;
  constexpr int kLength = 100000;
  for (int i = 0; i < kLength; ++i)
    nodes += fmt::format(R"({}{{"name":"n{}","op":"neg","inputs":["n{}"]}})", i ? "," : "", i, (i + 1) % kLength);
  const std::string text = R"({"fusec":1,"inputs":[{"name":"x","dtype":"float32","shape":[4]}],"nodes":[)" + nodes +
                           R"(],"outputs":["n0"]})";
  const std::string message = message_of(text);
  CHECK(message.starts_with("m.json#/nodes/0: a cycle: found \"n0\" -> \"n99999\" -> \"n99998\""));
  CHECK(message.find("... (100000 nodes in all) -> \"n0\", expected") != std::string::npos);
}

TEST_CASE("a weight file behind a symbolic link out of the folder is refused") {
  namespace fs = std::filesystem;
  const fs::path root = fs::temp_directory_path() / fmt::format("fusec_hostile_{}", std::random_device{}());
  fs::create_directories(root / "model");
  const std::string bytes(8, '\0');
  write_safetensors((root / "outside.safetensors").string(), {{"w", {"F32", {2}}, bytes}});
  write_safetensors((root / "model" / "inside.safetensors").string(), {{"w", {"F32", {2}}, bytes}});
  fs::create_symlink("../outside.safetensors", root / "model" / "escape.safetensors");
  fs::create_symlink("inside.safetensors", root / "model" / "alias.safetensors");
  fs::create_directory_symlink(root, root / "model" / "up");
  const auto message = [&](const std::string& file) {
    return message_of(
        R"({"fusec":1,"inputs":[],"constants":[{"name":"w","dtype":"float32","shape":[2],"safetensors":{"file":")" +
            file + R"(","tensor":"w"}}],"nodes":[],"outputs":["w"]})",
        (root / "model").string());
  };
  CHECK(message("inside.safetensors") == "");
  CHECK(message("./inside.safetensors") == "");
  CHECK(message("alias.safetensors") == "");
  for (const char* file : {"escape.safetensors", "up/outside.safetensors", "../model/inside.safetensors"})
    CHECK(message(file) ==
          "m.json#/constants/0/safetensors/file: a weight file lies outside the model's folder: found " +
              in_quotes(file) + ", expected a path inside it");
  fs::remove_all(root);
}

}  // namespace fusec
