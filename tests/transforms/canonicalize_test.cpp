#include <doctest/doctest.h>

#include "ir/text.h"
#include "ir/verify.h"
#include "support/canonicalized.h"

using namespace fusec;

namespace {

std::string canonical(const char* text, CanonicalGraph* result = nullptr) {
  CanonicalGraph c = canonicalized(parse_graph_text(text));
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

TEST_CASE("what is an identity of coinciding operands is none of others of the same types") {
  for (const bool first : {true, false}) {
    CAPTURE(first);
    const std::string twice = "a: float32[4] = where(c, x, x)\n", once = "b: float32[4] = where(c, x, y)\n";
    const std::string text =
        canonical((std::string("model \"m\"\ninput c: bool[4]\ninput x: float32[4]\n") + "input y: float32[4]\n" +
                   (first ? twice + once : once + twice) + "d: float32[4] = sub(a, b)\nreturn d\n")
                      .c_str());
    CHECK(text.find("where(c, x, y)") != std::string::npos);
    CHECK(text.find("sub(x, b)") != std::string::npos);
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

TEST_CASE("what the algebraic rules with attributes make of a node") {
  struct Case {
    const char* before;  // of x: float32[2, 3, 4]
    const char* after;
  };
  for (const Case& t : {
           Case{"a: float32[6, 4] = reshape(x, shape=[6, 4])\nb: float32[24] = flatten(a)",
                "b: float32[24] = reshape(x, shape=[24])"},
           Case{"a: float32[3, 2, 4] = permute(x, dims=[1, 0, 2])\n"
                "b: float32[3, 4, 2] = transpose(a, dim0=-1, dim1=-2)",
                "b: float32[3, 4, 2] = permute(x, dims=[1, 2, 0])"},
           Case{"a: float64[2, 3, 4] = cast(x, dtype=\"float64\")\nb: bfloat16[2, 3, 4] = cast(a, dtype=\"bfloat16\")",
                "b: bfloat16[2, 3, 4] = cast(x, dtype=\"bfloat16\")"},
           Case{"a: float32[5, 2, 3, 4] = expand(x, shape=[5, 2, 3, 4])\n"
                "b: float32[6, 5, 2, 3, 4] = expand(a, shape=[6, -1, -1, -1, -1])",
                "b: float32[6, 5, 2, 3, 4] = expand(x, shape=[6, 5, 2, 3, 4])"},
       }) {
    CanonicalGraph c;
    const std::string text =
        canonical(("model \"m\"\ninput x: float32[2, 3, 4]\n" + std::string(t.before) + "\nreturn b\n").c_str(), &c);
    CHECK(text == "model \"m\"\ninput x: float32[2, 3, 4]\n" + std::string(t.after) + "\nreturn b\n");
    CHECK(c.stands_for == std::vector<std::vector<std::string>>{{"a", "b"}});
  }
}

TEST_CASE("one way and back is nowhere, and its nodes stand with the reader") {
  for (const char* there_and_back :
       {"a: float32[4, 2] = permute(x, dims=[1, 0])\nb: float32[2, 4] = transpose(a, dim0=0, dim1=1)",
        "a: float32[8] = flatten(x)\nb: float32[2, 4] = reshape(a, shape=[2, 4])",
        "a: float64[2, 4] = cast(x, dtype=\"float64\")\nb: float32[2, 4] = cast(a, dtype=\"float32\")",
        "a: float32[2, 4] = flip(x, dims=[1])\nb: float32[2, 4] = flip(a, dims=[1])",
        "a: float32[2, 1, 4] = unsqueeze(x, dim=1)\nb: float32[2, 4] = squeeze(a, dim=1)",
        "a: float32[2, 4] = neg(x)\nb: float32[2, 4] = neg(a)"}) {
    CAPTURE(there_and_back);
    CanonicalGraph c;
    canonical(("model \"m\"\ninput x: float32[2, 4]\n" + std::string(there_and_back) +
               "\ny: float32[2, 4] = exp(b)\nreturn y\n")
                  .c_str(),
              &c);
    CHECK(c.stands_for == std::vector<std::vector<std::string>>{{"a", "b", "y"}});
  }
}

TEST_CASE("rules look neither through probes nor past outputs") {
  CanonicalGraph c;
  canonical(R"(model "m"
input x: float32[4]
a: float32[4] = neg(x) fuse=false
b: float32[4] = neg(a)
d: float32[4] = neg(b)
e: float32[4] = relu(x)
f: float32[4] = relu(e)
g: float32[4] = mul(a, 1)
h: float32[4] = exp(g)
return d, f, h
)",
            &c);
  CHECK(c.graph.find_node("d") != kNone);  // an output under its own name
  CHECK(c.graph.find_node("f") != kNone);
  CHECK(c.stands_for[c.graph.find_node("a")] == std::vector<std::string>{"a"});  // alone in its group
  CHECK(c.stands_for[c.graph.find_node("h")] == std::vector<std::string>{"g", "h"});
}

TEST_CASE("what a rule leaves without a reader is dropped") {
  CanonicalGraph c;
  canonical(R"(model "m"
input x: float32[4]
input z: float32[4]
a: bool[4] = gt(z, 0)
y: float32[4] = exp(x)
b: float32[4] = where(a, y, y)
d: float32[4] = sin(b)
return d
)",
            &c);
  CHECK(c.dropped == std::vector<std::string>{"a"});
  CHECK(c.stands_for == std::vector<std::vector<std::string>>{{"y", "b"}, {"d"}});
}

TEST_CASE("a long chain of rules takes one walk") {
  std::string text = "model \"m\"\ninput x: float32[4, 4]\n";
  std::string last = "x";
  for (int i = 0; i < 20000; ++i) {
    const std::string name = "n" + std::to_string(i);
    text += name +
            ": float32[4, 4] = " + (i % 3 == 0 ? "neg(" + last + ")" : "transpose(" + last + ", dim0=0, dim1=1)") +
            "\n";
    last = name;
  }
  text += "y: float32[4, 4] = exp(" + last + ")\nreturn y\n";
  CanonicalGraph c;
  canonical(text.c_str(), &c);
  std::size_t names = 0;
  for (const auto& origins : c.stands_for) names += origins.size();
  CHECK(names + c.dropped.size() == 20001);
  CHECK(c.graph.nodes.size() == 3);  // one neg, one transpose, exp
}
