// A pattern whose replacement holds what it matches, and more, is refused once it has made many times the model's
// nodes; the message names it.
#include <doctest/doctest.h>

#include "ir/error.h"
#include "ir/read.h"
#include "support/canonicalized.h"
#include "transforms/patterns/pattern_list.h"
#include "transforms/patterns/pattern_text.h"
#include "transforms/patterns/recognize.h"

using namespace fusec;

namespace {

// y = x + x, as often.
Graph doublings(int count) {
  std::string nodes, before = "x";
  for (int i = 0; i < count; ++i) {
    const std::string name = "n" + std::to_string(i);
    nodes += (i == 0 ? "" : ",") + (R"({"name":")" + name + R"(","op":"add","inputs":[")" + before + "\",\"" + before) +
             "\"]}";
    before = name;
  }
  return read_model_text(R"({"fusec":1,"inputs":[{"name":"x","dtype":"float32","shape":[8]}],"nodes":[)" + nodes +
                             R"(],"outputs":[")" + before + "\"]}",
                         "m", "");
}

std::string error_of(int nodes, const std::string& pattern, std::int64_t growth = 8) {
  CanonicalGraph canonical = canonicalized(doublings(nodes));
  const Limits limits(std::map<std::string, std::int64_t>{{"pattern-growth", growth}});
  try {
    recognize_patterns(canonical, ordered(parse_patterns(pattern, "test.patterns")), limits);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a rewrite that grows for ever is refused by its name") {
  for (const char* replacement : {"add(add(x, y), mul(add(x, y), 0))", "mul(add(add(x, y), add(x, y)), 0.5)",
                                  "relu(relu(relu(relu(add(add(x, y), 0)))))"}) {
    CAPTURE(replacement);
    const std::string message =
        error_of(40, std::string("pattern mine.p priority 100\n match add(x, y)\n becomes ") + replacement);
    CHECK(message.find("pattern \"mine.p\": the limit pattern-growth is exceeded") != std::string::npos);
    CHECK(message.find("found 9, expected at most 8 (hint: --limit=pattern-growth=VALUE raises it)") !=
          std::string::npos);
  }
}

TEST_CASE("a rewrite that makes a few nodes of each is none of those") {
  const std::string pattern = "pattern mine.p priority 100\n match add(x, y)\n becomes relu(tanh(neg(sub(x, neg(y)))))";
  CHECK(error_of(3000, pattern) == "");
  CHECK(error_of(3000, pattern, 2).find("the limit pattern-growth") != std::string::npos);
}

TEST_CASE("an alternative that lacks a required attribute of the replacement is not replaced") {
  CanonicalGraph canonical = canonicalized(doublings(2));
  const std::string pattern =
      "pattern mine.p priority 100\n match add(x, y) | exp(log_softmax(x, dim=d))\n becomes softmax(x, dim=d)";
  recognize_patterns(canonical, ordered(parse_patterns(pattern, "test.patterns")), {});
  for (const Node& node : canonical.graph.nodes) CHECK(node.op->name == "add");
}
