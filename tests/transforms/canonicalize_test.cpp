#include "transforms/canonicalize.h"

#include <doctest/doctest.h>

#include "ir/text.h"
#include "ir/verify.h"

using namespace fusec;

namespace {

std::string canonical(const char* text, CanonicalGraph* result = nullptr) {
  CanonicalGraph c = canonicalize(parse_graph_text(text));
  CHECK(first_problem(c.graph) == "");
  CHECK(c.stands_for.size() == c.graph.nodes.size());
  const std::string out = graph_text(c.graph);
  if (result) *result = std::move(c);
  return out;
}

}  // namespace

TEST_CASE("what no output needs is dropped") {
  CanonicalGraph c;
  const std::string text = canonical(R"(model "m"
input x: float32[4]
a: float32[4] = relu(x)
b: float32[4] = exp(x)
c: float32[4] = neg(b)
return a
)",
                                     &c);
  CHECK(c.dropped == std::vector<std::string>{"b", "c"});
  CHECK(text.find("exp") == std::string::npos);
}

TEST_CASE("identities of computed values go, and stand with the node that computes the value") {
  CanonicalGraph c;
  canonical(R"(model "m"
symbol n min=1 max=100
input x: float32[n, 4]
a: float32[n, 4] = relu(x)
b: float32[n, 4] = identity(a)
d: float32[n, 4] = reshape(b, shape=["n", 4])
e: float32[n, 4] = cast(d, dtype="float32")
f: float32[n, 4] = mul(e, 1.0)
g: float32[n, 4] = expand(f, shape=[-1, -1])
h: float32[n, 4] = exp(g)
return h
)",
            &c);
  CHECK(c.graph.nodes.size() == 2);
  CHECK(c.stands_for[0] == std::vector<std::string>{"a", "b", "d", "e", "f", "g"});
}

TEST_CASE("an identity that changes something stays") {
  for (const char* node : {"b: float32[2, 2] = transpose(a, dim0=0, dim1=1)", "b: float32[2, 2] = add(a, 0.0)",
                           "b: float32[2, 2] = mul(a, 2.0)", "b: float32[2, 2] = flip(a, dims=[0])"}) {
    CAPTURE(node);
    CanonicalGraph c;
    canonical((std::string("model \"m\"\ninput x: float32[2, 2]\na: float32[2, 2] = relu(x)\n") + node +
               "\nc: float32[2, 2] = exp(b)\nreturn c\n")
                  .c_str(),
              &c);
    CHECK(c.graph.nodes.size() == 3);
  }
}

TEST_CASE("duplicates merge, numbers by value; outputs and probes keep their own node") {
  CanonicalGraph c;
  canonical(R"(model "m"
input x: float32[4]
a: float32[4] = add(x, 2.0)
b: float32[4] = add(x, 2.0)
d: float32[4] = add(x, 2)
e: float32[4] = add(x, 2.0) fuse=false
f: float32[4] = mul(a, b)
g: float32[4] = add(x, 2.0)
h: float32[4] = add(f, d)
i: float32[4] = add(h, e)
return i, g
)",
            &c);
  CHECK(c.stands_for[0] == std::vector<std::string>{"a", "b"});
  CHECK(c.graph.nodes.size() == 7);
  CHECK(c.graph.find_node("d") != kNone);
  CHECK(c.graph.find_node("e") != kNone);
  CHECK(c.graph.find_node("g") != kNone);
}
