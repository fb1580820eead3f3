// A million nodes: read in seconds, in memory that leaves room for the rest of the compiler, and in linear time.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <string>

#include "ir/read.h"
#include "ir/verify.h"

namespace fusec {
namespace {

// Two-operand nodes over the last two values; custom ones declare their types, as the partition corpus does.
std::string chain(int count, bool custom) {
  std::string text = R"({"fusec":1,"inputs":[{"name":"n-1","dtype":"float32","shape":[4,8]}],"nodes":[)";
  for (int i = 0; i < count; ++i) {
    text += fmt::format(R"({}{{"name":"n{}","op":"{}","inputs":["n{}","n{}"])", i ? ",\n" : "", i,
                        custom ? "custom.e" : "add", i - 1, std::max(i - 2, -1));
    if (custom)
      text += fmt::format(R"(,"outputs":[{{"name":"n{}","dtype":"float32","shape":[4,8]}}],"pattern":"elemwise")", i);
    text += "}";
  }
  return text + fmt::format(R"(],"outputs":["n{}"]}})", count - 1);
}

double seconds_to_read(int count, bool custom) {
  const std::string text = chain(count, custom);
  const auto start = std::chrono::steady_clock::now();
  const Graph graph = read_model_text(text, "chain", "");
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  CHECK(graph.nodes.size() == static_cast<std::size_t>(count));
  return seconds;
}

}  // namespace

TEST_CASE("a hundred thousand nodes are read and verified at once") {
  const Graph graph = read_model_text(chain(100000, false), "chain", "");
  CHECK(first_problem(graph) == "");
}

TEST_CASE("nodes whose file order is reversed are sorted as fast") {
  constexpr int kCount = 100000;
  std::string text = R"({"fusec":1,"inputs":[{"name":"n-1","dtype":"float32","shape":[4]}],"nodes":[)";
  for (int i = kCount - 1; i >= 0; --i)
    text += fmt::format(R"({{"name":"n{}","op":"neg","inputs":["n{}"]}}{})", i, i - 1, i ? "," : "");
  const Graph graph = read_model_text(text + R"(],"outputs":["n0"]})", "chain", "");
  CHECK(graph.nodes.front().name == "n0");
  CHECK(graph.nodes.back().file_position == 0);
}

TEST_CASE("many distinct custom ops are no slower") {
  std::string text = R"({"fusec":1,"inputs":[],"nodes":[)";
  for (int i = 0; i < 100000; ++i)
    text += fmt::format(
        R"({}{{"name":"n{}","op":"custom.{}","inputs":[],"outputs":[{{"name":"n{}","dtype":"bool","shape":[{}]}}]}})",
        i ? "," : "", i, i, i, i);
  CHECK(read_model_text(text + R"(],"outputs":["n0"]})", "ops", "").nodes.size() == 100000);
}

TEST_SUITE("full") {
  TEST_CASE("a million nodes are read in linear time") {
    for (const bool custom : {false, true}) {
      CAPTURE(custom);
      const double small = seconds_to_read(100000, custom), large = seconds_to_read(1000000, custom);
      MESSAGE(fmt::format("{} nodes: 100k {:.2f} s, 1M {:.2f} s", custom ? "custom" : "table", small, large));
      CHECK(large < 30 * small);
    }
  }
}

}  // namespace fusec
