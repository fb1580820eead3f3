#include "transforms/sink_split.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "ir/text.h"
#include "ir/verify.h"
#include "support/canonicalized.h"

using namespace fusec;

namespace {

struct Sunk {
  std::string text;  // the nodes, a line each
  std::vector<std::string> stands_for, dropped;
};

Sunk sunk(const std::string& text) {
  CanonicalGraph c = canonical_of(text);
  sink_split(c);
  CHECK(first_problem(c.graph) == "");
  CHECK(c.stands_for.size() == c.graph.nodes.size());
  Sunk result{.text = graph_text(c.graph), .stands_for = {}, .dropped = c.dropped};
  for (const auto& names : c.stands_for) result.stands_for.insert(result.stands_for.end(), names.begin(), names.end());
  return result;
}

bool has(const Sunk& s, const std::string& part) {
  return s.text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a split of splits is a slice for each piece") {
  const Sunk s = sunk(
      "input x: float32[4, 16]\n"
      "a.0: float32[4, 8], a.1: float32[4, 8] = split(x, dim=1, split_sizes=[8, 8]) as a\n"
      "b.0: float32[4, 4], b.1: float32[4, 4] = chunk(a.0, chunks=2, dim=-1) as b\n"
      "v: float32[4] = select(a.1, dim=1, index=3)\nw: float32[4, 4] = slice(a.1, dim=1, start=1, step=2)\n"
      "p: float32[4, 4] = mul(b.0, b.1)\nq: float32[4, 4] = mul(p, w)\nreturn q, v\n");
  CHECK(!has(s, "split("));
  CHECK(!has(s, "chunk("));
  CHECK(has(s, "slice(x, dim=1, end=4, start=0"));
  CHECK(has(s, "slice(x, dim=1, end=8, start=4"));
  CHECK(has(s, "w: float32[4, 4] = slice(x, dim=1, end=16, start=9, step=2)"));
  CHECK(has(s, "v: float32[4] = select(x, dim=1, index=11)"));
  for (const char* name : {"a", "b", "v", "w", "p", "q"})
    CHECK(std::ranges::find(s.stands_for, name) != s.stands_for.end());
  CHECK(s.dropped.empty());
}

TEST_CASE("sizes may come from symbols") {
  const Sunk s = sunk(
      "symbol h min=1 max=64 multiple_of=1 hint=8\ninput x: float32[4, 4*h]\n"
      "a.0: float32[4, 2*h], a.1: float32[4, 2*h] = split(x, dim=1, split_sizes=[\"2*h\", \"2*h\"]) as a\n"
      "b.0: float32[4, h], b.1: float32[4, h] = split(a.1, dim=1, split_sizes=[\"h\", \"h\"]) as b\n"
      "p: float32[4, h] = mul(b.0, b.1)\nreturn p\n");
  CHECK(!has(s, "split("));
  CHECK(has(s, "start=\"2*h\""));
  CHECK(has(s, "start=\"3*h\""));
}

TEST_CASE("a select of a dimension that a reshape made of one is a slice") {
  const Sunk s = sunk(
      "input x: float32[4, 16]\nr: float32[4, 2, 8] = reshape(x, shape=[4, 2, 8])\n"
      "a: float32[4, 8] = select(r, dim=1, index=1)\nt: float32[4, 8, 2] = reshape(x, shape=[4, 8, 2])\n"
      "b: float32[4, 8] = select(t, dim=-1, index=1)\ny: float32[4, 8] = mul(a, b)\nreturn y\n");
  CHECK(has(s, "a: float32[4, 8] = slice(x, dim=1, end=16, start=8"));
  CHECK(has(s, "b: float32[4, 8] = slice(x, dim=1, end=16, start=1, step=2)"));
  CHECK(!has(s, "reshape"));
}

TEST_CASE("pieces along another dimension, outputs, and splits by themselves stay") {
  const std::string crossed =
      "input x: float32[4, 16]\na.0: float32[4, 8], a.1: float32[4, 8] = split(x, dim=1, split_sizes=[8, 8]) as a\n"
      "b: float32[2, 8] = slice(a.0, dim=0, start=0, end=2)\nreturn b\n";
  CHECK(has(sunk(crossed), "split(x"));
  const std::string output =
      "input x: float32[4, 16]\na.0: float32[4, 8], a.1: float32[4, 8] = split(x, dim=1, split_sizes=[8, 8]) as a\n"
      "b: float32[4, 2] = slice(a.0, dim=1, start=2, end=4)\nreturn b, a.1\n";
  CHECK(has(sunk(output), "split(x"));
  CHECK(has(sunk(output), "b: float32[4, 2] = slice(x, dim=1, end=4, start=2"));
  const std::string single =
      "input x: float32[4, 16]\na.0: float32[4, 8], a.1: float32[4, 8] = split(x, dim=1, split_sizes=[8, 8]) as a\n"
      "y: float32[4, 8] = mul(a.0, a.1)\nreturn y\n";
  CHECK(has(sunk(single), "split(x"));
}
