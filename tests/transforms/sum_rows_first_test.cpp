#include "transforms/sum_rows_first.h"

#include <doctest/doctest.h>

#include <string>

#include "ir/text.h"
#include "ir/verify.h"
#include "support/canonicalized.h"

using namespace fusec;

namespace {

// The ops, and the text of the graph.
struct Rewritten {
  std::string ops, text;
};

Rewritten rewritten(const std::string& text) {
  CanonicalGraph c = canonical_of(text);
  sum_rows_first(c);
  CHECK(first_problem(c.graph) == "");
  CHECK(c.stands_for.size() == c.graph.nodes.size());
  CHECK(c.dropped.empty());
  Rewritten result{.ops = "", .text = graph_text(c.graph)};
  for (const Node& node : c.graph.nodes) result.ops += (result.ops.empty() ? "" : " ") + std::string(node.op->name);
  return result;
}

std::string loss(const std::string& dtype, const std::string& shape, const std::string& result) {
  const std::string tensor = dtype + "[" + shape + "]";
  return "input x: " + tensor + "\ninput t: " + tensor + "\np: " + tensor + " = log_softmax(x, dim=-1)\nm: " + tensor +
         " = mul(p, t)\n" + result + "\nreturn y\n";
}

}  // namespace

TEST_CASE("a sum of all elements behind a softmax is one of the rows' sums") {
  const Rewritten one = rewritten(loss("float32", "64, 1000", "y: float32[] = sum(m)"));
  CHECK(one.ops == "log_softmax mul sum sum");
  CHECK(one.text.find("float32[64] = sum(m") != std::string::npos);
  CHECK(rewritten(loss("float32", "4, 64, 1000", "y: float32[4] = mean(m, dim=[1, 2])")).ops ==
        "log_softmax mul mean mean");
  CHECK(rewritten(loss("float32", "4, 1, 1000", "y: float32[1, 1, 1] = mean(m, keepdim=true)")).ops ==
        "log_softmax mul mean mean");
}

TEST_CASE("what stands between the two is no narrower than float32") {
  const Rewritten narrow = rewritten(loss("bfloat16", "64, 1000", "y: bfloat16[] = sum(m)"));
  CHECK(narrow.ops == "log_softmax mul cast sum sum cast");
  CHECK(narrow.text.find("float32[64] = sum(") != std::string::npos);
}

TEST_CASE("other sums stay") {
  CHECK(rewritten(loss("float32", "64, 1000", "y: float32[64] = sum(m, dim=[1])")).ops == "log_softmax mul sum");
  CHECK(rewritten(loss("float32", "64, 1000", "y: float32[1000] = sum(m, dim=[0])")).ops == "log_softmax mul sum");
  CHECK(rewritten(loss("float32", "1, 1000", "y: float32[] = sum(m)")).ops == "log_softmax mul sum");
  CHECK(rewritten("input x: float32[64, 1000]\nm: float32[64, 1000] = exp(x)\ny: float32[] = sum(m)\nreturn y\n").ops ==
        "exp sum");
  CHECK(rewritten("input x: float32[64, 1000]\nm: float32[64, 1000] = softmax(x, dim=0)\ny: float32[] = sum(m)\n"
                  "return y\n")
            .ops == "softmax sum");
  CHECK(rewritten("input x: float32[64, 1000]\nm: float32[64, 1000] = softmax(x, dim=1)\ny: float32[] = sum(m)\n"
                  "return m, y\n")
            .ops == "softmax sum");
}
