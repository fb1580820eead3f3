#include "transforms/fold_constants.h"

#include <doctest/doctest.h>

#include "analysis/evaluate/evaluate_node.h"
#include "ir/constant_data.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "support/canonicalized.h"

using namespace fusec;

namespace {

CanonicalGraph folded(const std::string& text) {
  CanonicalGraph c = canonicalized(parse_graph_text("model \"m\"\n" + text));
  CHECK(first_problem(c.graph) == "");
  return c;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("what is made of constants alone becomes one constant") {
  const CanonicalGraph c = folded(R"(input x: float32[9]
constant c: int64[3] = [2, 3, 4]
a: int64[3] = mul(c, 2)
b: int64[3] = sub(a, 1)
y: float32[3] = gather(x, b, dim=0)
return y
)");
  CHECK(c.folded == Names{"a", "b"});
  CHECK(graph_text(c.graph) == R"(model "m"
input x: float32[9]
constant b: int64[3] = [3, 5, 7]
y: float32[3] = gather(x, b, dim=0)
return y
)");
}

TEST_CASE("full and arange, scans and sorts are folded, too; an output may be a constant") {
  const CanonicalGraph c = folded(R"(a: int64[4] = arange(start=0, end=4, dtype="int64")
f: int64[4] = full(shape=[4], value=3, dtype="int64")
s: int64[4] = mul(a, f)
t: int64[4] = cumsum(s, dim=0)
v: int64[4], i: int64[4] = sort(t, dim=0, descending=true)
return v, i
)");
  CHECK(c.graph.nodes.empty());
  CHECK(c.folded == Names{"a", "f", "s", "t", "v"});
  CHECK(graph_text(c.graph) == R"(model "m"
constant v: int64[4] = [18, 9, 3, 0]
constant i: int64[4] = [3, 2, 1, 0]
return v, i
)");
}

TEST_CASE("equal values are one constant, identities of constants are those") {
  const CanonicalGraph c = folded(R"(input x: float32[2]
constant c: float32[2] = [1.0, 3.0]
a: float32[2] = full(shape=[2], value=2.0, dtype="float32")
b: float32[2] = full(shape=[2], value=2.0, dtype="float32")
d: float32[2] = identity(c)
e: float32[2] = mul(x, a)
f: float32[2] = mul(x, b)
g: float32[2] = sub(e, d)
h: float32[2] = div(e, g)
i: float32[2] = add(h, f)
return i
)");
  CHECK(c.folded == Names{"a", "d", "b"});
  CHECK(graph_text(c.graph) == R"(model "m"
input x: float32[2]
constant c: float32[2] = [1.0, 3.0]
constant a: float32[2] = [2.0, 2.0]
e: float32[2] = mul(x, a)
g: float32[2] = sub(e, c)
h: float32[2] = div(e, g)
i: float32[2] = add(h, e)
return i
)");
}

TEST_CASE("what must stay, stays") {
  struct Case {
    const char* why;
    const char* text;
    std::size_t nodes;
  };
  for (const Case& t : {
           Case{"a value larger than the data it is made of and than 4 KiB",
                "constant c: float32[] = [2.0]\na: float32[2000] = expand(c, shape=[2000])\nreturn a\n", 1},
           Case{"\"fuse\": false", "constant c: float32[2] = [1.0, 2.0]\na: float32[2] = exp(c) fuse=false\nreturn a\n",
                1},
           Case{"a weight given at run time", "constant c: float32[2]\na: float32[2] = exp(c)\nreturn a\n", 1},
           Case{"a shape that depends on a symbol",
                "symbol n min=1 max=9\ninput x: float32[n]\nconstant c: float32[1] = [2.0]\n"
                "a: float32[n] = expand(c, shape=[\"n\"])\nb: float32[n] = add(a, x)\nreturn b\n",
                2},
           Case{"a value that depends on a symbol",
                "symbol n min=1 max=9\ninput x: float32[n]\nconstant c: int64[2] = [2, 3]\n"
                "a: int64[2] = add(c, {2*n})\nb: int64[2] = neg(a)\nreturn b, x\n",
                2},
           Case{"a place that depends on a symbol",
                "symbol n min=1 max=2\ninput x: float32[n]\nconstant c: int64[4] = [2, 3, 4, 5]\n"
                "a: int64[2] = slice(c, dim=0, start=\"n\", end=\"n+2\")\nreturn a, x\n",
                1},
           Case{"long work",
                "constant c: float32[1, 1] = [2.0]\na: float32[30, 30] = expand(c, shape=[30, 30])\n"
                "b: float32[30, 5000] = full(shape=[30, 5000], value=2.0, dtype=\"float32\")\n"
                "d: float32[30, 30] = linear(b, b)\nreturn d, a\n",
                2},
       }) {
    CAPTURE(t.why);
    CHECK(folded(t.text).graph.nodes.size() == t.nodes);
  }
}

TEST_CASE("a weight of a file is an argument of the model, not data") {
  Graph graph = parse_graph_text("model \"m\"\nconstant c: float32[2]\na: float32[2] = exp(c)\nreturn a\n");
  graph.constants[0].safetensors_file = "w.safetensors";
  graph.constants[0].safetensors_tensor = "w";
  CHECK(canonicalized(std::move(graph)).folded.empty());
}

TEST_CASE("a folded value is stored bit for bit as the reference computes it, in every dtype") {
  for (const DTypeInfo& dtype : all_dtypes()) {
    CAPTURE(dtype.name);
    HostTensor all(dtype.dtype, {256});
    for (std::int64_t i = 0; i < 256; ++i)
      all.set_raw(i, dtype.dtype == DType::kBool ? i % 2 : static_cast<std::uint64_t>(i) * 0x0123456789abcdefull);
    const std::vector<Scalar> data = constant_data(all);
    const std::vector<std::byte> bytes = constant_bytes(data, dtype.dtype);
    HostTensor again(dtype.dtype, {256});
    again.bytes = bytes;
    for (std::int64_t i = 0; i < 256; ++i) {
      const bool same = again.raw(i) == all.raw(i) || (again.real(i) != again.real(i) && all.real(i) != all.real(i));
      CHECK(same);
    }
  }
}

TEST_CASE("where no bit may change, only what the device would compute alike is folded") {
  const Graph graph = parse_graph_text(R"(model "m"
input x: float32[3]
constant c: float32[3] = [2.0, 3.0, 4.5]
a: float32[3] = mul(c, 0.1)
b: float32[3] = flip(a, dims=[0])
d: float32[3] = sqrt(b)
e: float32[3] = exp(d)
f: float32[3] = gelu(c)
g: float32[] = sum(c)
h: float32[3] = add(x, e)
i: float32[3] = add(h, f)
j: float32[3] = add(i, g)
return j
)");
  CanonicalGraph exact{.graph = graph};
  exact.stands_for = as_given(graph);
  fold_exact_constants(exact);
  CHECK(first_problem(exact.graph) == "");
  CHECK(exact.folded == Names{"a", "b", "d"});
  CanonicalGraph all{.graph = graph};
  all.stands_for = as_given(graph);
  fold_constants(all);
  CHECK(all.folded == Names{"a", "b", "d", "e", "f", "g"});
}
