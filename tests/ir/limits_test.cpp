// Limits: each refuses what exceeds it by a message that names it, the size found and the option that raises it.
#include "ir/limits.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "ir/read.h"

using namespace fusec;

namespace {

std::string error_of(const std::string& model, const Limits& limits = {}) {
  try {
    read_model_text(model, "m", "", OpTable::builtin(), limits);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

Limits with(const std::string& name, std::int64_t value) {
  return Limits(std::map<std::string, std::int64_t>{{name, value}});
}

std::string split_model(int pieces) {
  return fmt::format(
      R"({{"fusec":1,"inputs":[{{"name":"x","dtype":"float32","shape":[{}]}}],"nodes":[{{"name":"s","op":"split",)"
      R"("inputs":["x"],"attrs":{{"split_sizes":1,"dim":0}}}}],"outputs":["s.0"]}})",
      pieces);
}

// `levels` tuples, each of `width` times the one before it, then a get_item of each.
std::string tuple_model(int levels, int width) {
  std::string nodes, before = "x";
  const auto node = [&](const std::string& name, const std::string& rest) {
    nodes += fmt::format(R"({}{{"name":"{}",{}}})", nodes.empty() ? "" : ",", name, rest);
    before = name;
  };
  for (int level = 0; level < levels; ++level) {
    std::string fields;
    for (int i = 0; i < width; ++i) fields += fmt::format(R"({}"{}")", i == 0 ? "" : ",", before);
    node(fmt::format("t{}", level), fmt::format(R"("op":"tuple","inputs":[{}])", fields));
  }
  for (int level = 0; level < levels; ++level)
    node(fmt::format("g{}", level), fmt::format(R"("op":"get_item","inputs":["{}"],"attrs":{{"index":0}})", before));
  return fmt::format(
      R"({{"fusec":1,"inputs":[{{"name":"x","dtype":"float32","shape":[2]}}],"nodes":[{}],"outputs":["{}"]}})", nodes,
      before);
}

}  // namespace

TEST_CASE("every limit is in docs/limits.md with its default") {
  std::ifstream file(std::string(FUSEC_TESTS_DIR) + "/../docs/limits.md");
  std::stringstream text;
  text << file.rdbuf();
  for (const LimitRow& row : limit_rows())
    CHECK(text.str().find(fmt::format("| `{}` | {} | {} |", row.name, row.preset, row.counts)) != std::string::npos);
}

TEST_CASE("a limit that does not exist and a negative one are refused") {
  CHECK_THROWS_WITH_AS(with("result", 1), doctest::Contains("did you mean \"results\"?"), Error);
  CHECK_THROWS_WITH_AS(with("results", -1), doctest::Contains("at least 0"), Error);
}

TEST_CASE("results of one node, and of all") {
  CHECK(error_of(split_model(16384)) == "");
  CHECK(error_of(split_model(16385)) ==
        "m#/nodes/0: the limit results is exceeded: results of one node, as the pieces of a split: found 16385, "
        "expected at most 16384 (hint: --limit=results=VALUE raises it)");
  CHECK(error_of(split_model(16385), with("results", 20000)) == "");
  CHECK(error_of(split_model(100), with("values", 99)).find("the limit values is exceeded") != std::string::npos);
}

TEST_CASE("fields of nested tuples are counted wherever they stand, before they are made") {
  CHECK(error_of(tuple_model(1, 3), with("tuple-fields", 2)).find("found 3, expected at most 2") != std::string::npos);
  // 2 + 6 + 14 fields
  CHECK(error_of(tuple_model(3, 2), with("tuple-fields", 22)) == "");
  CHECK(error_of(tuple_model(3, 2), with("tuple-fields", 21)).find("#/nodes/2: the limit tuple-fields") !=
        std::string::npos);
  // 2^60 fields: refused long before.
  CHECK(error_of(tuple_model(60, 2)).find("the limit tuple-fields") != std::string::npos);
  CHECK(error_of(tuple_model(9, 100)).find("the limit tuple-fields") != std::string::npos);
  // Without fields there would be nothing to count but the tuples themselves.
  CHECK(error_of(tuple_model(1, 0)).find("field out of range") != std::string::npos);
}

TEST_CASE("tuples inside one another") {
  CHECK(error_of(tuple_model(256, 1)) == "");
  CHECK(error_of(tuple_model(257, 1)).find("#/nodes/256: the limit tuple-depth is exceeded") != std::string::npos);
}
