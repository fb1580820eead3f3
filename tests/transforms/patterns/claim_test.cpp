#include "transforms/patterns/claim.h"

#include <doctest/doctest.h>

#include "ir/text.h"
#include "ir/verify.h"
#include "support/canonicalized.h"
#include "transforms/patterns/near_misses.h"
#include "transforms/patterns/pattern_list.h"
#include "transforms/patterns/pattern_text.h"
#include "transforms/patterns/recognize.h"

using namespace fusec;

namespace {

PatternList list_of(const std::string& patterns) {
  return ordered(parse_patterns(patterns, "p"));
}

// "silu_mul{a h}" for each claim, in order.
std::string claims_of(CanonicalGraph& c, const std::string& patterns) {
  std::string result;
  for (const PatternClaim& claim : claim_patterns(c, list_of(patterns))) {
    result += (result.empty() ? "" : " ") + claim.pattern + "{";
    for (std::size_t i = 0; i < claim.nodes.size(); ++i) result += (i ? " " : "") + c.graph.nodes[claim.nodes[i]].name;
    result += "}";
  }
  CHECK(first_problem(c.graph) == "");
  return result;
}

std::string claims_in(const std::string& graph, const std::string& patterns) {
  CanonicalGraph c = canonical_of(graph);
  return claims_of(c, patterns);
}

std::string why_not(const std::string& graph, const std::string& patterns, const char* node) {
  CanonicalGraph c = canonical_of(graph);
  const PatternList list = list_of(patterns);
  const std::vector<PatternClaim> claims = claim_patterns(c, list);
  const auto misses = near_misses(c.graph, list, claims, {c.graph.find_node(node)});
  return misses.empty() ? "" : misses[0].why;
}

const std::string kGlu =
    "pattern t.glu match mul(act: silu(~gate), up) where dtype(up, float16, float32) becomes group\n";
const std::string kInputs = "input g: float16[4, 8]\ninput u: float16[4, 8]\n";

}  // namespace

TEST_CASE("a match becomes a claim, operands of commutative ops in either order") {
  CHECK(claims_in(kInputs + "a: float16[4, 8] = silu(g)\nh: float16[4, 8] = mul(a, u)\nreturn h\n", kGlu) ==
        "t.glu{a h}");
  CHECK(claims_in(kInputs + "a: float16[4, 8] = silu(g)\nh: float16[4, 8] = mul(u, a)\nreturn h\n", kGlu) ==
        "t.glu{a h}");
  CHECK(claims_in(kInputs + "a: float16[4, 8] = relu(g)\nh: float16[4, 8] = mul(u, a)\nreturn h\n", kGlu) == "");
}

TEST_CASE("casts and views that keep the meaning are looked through, others are not") {
  const std::string widened = kInputs +
                              "w: float32[4, 8] = cast(g, dtype=\"float32\")\nv: float32[4, 8] = silu(w)\n"
                              "a: float16[4, 8] = cast(v, dtype=\"float16\")\nh: float16[4, 8] = mul(a, u)\nreturn h\n";
  CHECK(claims_in(widened, "pattern t.glu match mul(~silu(~gate), up) becomes group") == "t.glu{w v a h}");
  const std::string narrowed = kInputs +
                               "w: float8_e4m3fn[4, 8] = cast(g, dtype=\"float8_e4m3fn\")\n"
                               "v: float8_e4m3fn[4, 8] = silu(w)\na: float16[4, 8] = cast(v, dtype=\"float16\")\n"
                               "h: float16[4, 8] = mul(a, u)\nreturn h\n";
  CHECK(claims_in(narrowed, "pattern t.glu match mul(~silu(~gate), up) becomes group") == "");
}

TEST_CASE("what is needed outside is not taken away") {
  const std::string shared = kInputs +
                             "a: float16[4, 8] = silu(g)\nh: float16[4, 8] = mul(a, u)\n"
                             "e: float16[4, 8] = exp(a)\nreturn h, e\n";
  CHECK(claims_in(shared, kGlu) == "");
  CHECK(why_not(shared, kGlu, "h") == "\"a\" is read by \"e\" as well");
  const std::string output = kInputs + "a: float16[4, 8] = silu(g)\nh: float16[4, 8] = mul(a, u)\nreturn h, a\n";
  CHECK(claims_in(output, kGlu) == "");
  CHECK(why_not(output, kGlu, "h") == "\"a\" is an output of the model as well");
  CHECK(claims_in(output, "pattern t.glu match mul(act: silu(g), up) escapes act becomes group") == "t.glu{a h}");
}

TEST_CASE("a condition that does not hold is told") {
  const std::string bf16 =
      "input g: bfloat16[4]\ninput u: bfloat16[4]\na: bfloat16[4] = silu(g)\nh: bfloat16[4] = mul(a, u)\nreturn h\n";
  CHECK(claims_in(bf16, kGlu) == "");
  CHECK(why_not(bf16, kGlu, "h") == "dtype(up, float16, float32) does not hold");
}

TEST_CASE("that a node is kept out of fusion is told") {
  CanonicalGraph c = canonical_of(kInputs + "a: float16[4, 8] = silu(g)\nh: float16[4, 8] = mul(a, u)\nreturn h\n");
  c.graph.nodes[c.graph.find_node("a")].fuse = false;
  CHECK(claims_of(c, kGlu) == "");
  const auto misses = near_misses(c.graph, list_of(kGlu), {}, {c.graph.find_node("h")});
  REQUIRE(misses.size() == 1);
  CHECK(misses[0].why == "\"a\" is kept out of fusion");
}

TEST_CASE("a claim that would close a circle is not made") {
  const std::string circle = kInputs +
                             "a: float16[4, 8] = silu(g)\ns: float16[4, 8] = softmax(a, dim=1)\n"
                             "h: float16[4, 8] = mul(a, s)\nreturn h\n";
  const std::string pattern = "pattern t.glu match mul(act: silu(g), up) escapes act becomes group\n";
  CHECK(claims_in(circle, pattern) == "");
  CHECK(why_not(circle, pattern, "h").find("would close a circle through \"s\"") != std::string::npos);
  // The reader of what escapes stands between the claim's nodes in the file; it comes after them then.
  const std::string between = kInputs +
                              "a: float16[4, 8] = silu(g)\ns: float16[4, 8] = softmax(a, dim=1)\n"
                              "h: float16[4, 8] = mul(a, u)\nreturn h, s\n";
  CanonicalGraph c = canonical_of(between);
  CHECK(claims_of(c, pattern) == "t.glu{a h}");
  CHECK(c.graph.nodes[2].name == "s");
}

TEST_CASE("a user's pattern of one node claims it before others do, a built-in one does not") {
  const std::string graph =
      "input x: float16[8, 24]\ninput w: float16[16, 24]\ng: float16[8, 16] = linear(x, w)\n"
      "h: float16[8, 16] = silu(g)\nz: float16[8, 16] = softmax(h, dim=-1)\nreturn z\n";
  const std::string epilogue = "pattern t.epilogue priority 1 match chain(linear(a, b)) becomes group\n";
  CHECK(claims_in(graph, epilogue + "pattern t.linear priority 2 match linear(a, b) becomes group\n") == "t.linear{g}");
  CHECK(claims_in(graph, "pattern t.sm match softmax(a, dim=d) where last_dim(d, a) becomes group\n") == "t.sm{z}");
  CanonicalGraph c = canonical_of(graph);
  CHECK(claim_patterns(c, ordered(parse_patterns("pattern t.sm match softmax(a, dim=d) becomes group\n", ""))).empty());
}

TEST_CASE("of one node it is told, too, why a user's pattern does nothing") {
  const std::string graph = "input x: float16[8, 24]\nz: float16[8, 24] = softmax(x, dim=-1)\nreturn z\n";
  CHECK(why_not(graph, "pattern t.sum match softmax(a, dim=d) becomes sum(a, dim=d)\n", "z") ==
        "sum would have another type: float16[8], not float16[8, 24]");
  CHECK(why_not(graph, "pattern t.sm match softmax(a, dim=d) where equals(d, 0) becomes group\n", "z") ==
        "equals(d, 0) does not hold: it is 1");
}

TEST_CASE("one name is one value, attributes that are bound twice agree") {
  const std::string softmax =
      "pattern t.softmax match div(e: exp(sub(x, amax(x, dim=d, keepdim=true))), sum(e, dim=d, keepdim=true))\n"
      "  becomes softmax(x, dim=d)\n";
  const auto recognized = [&](const char* second_dim) {
    CanonicalGraph c = canonical_of(
        "input x: float32[4, 8]\nm: float32[4, 1] = amax(x, dim=[-1], keepdim=true)\ns: float32[4, 8] = sub(x, m)\n"
        "e: float32[4, 8] = exp(s)\nt: float32" +
        std::string(second_dim[0] == '1' ? "[4, 1]" : "[1, 8]") + " = sum(e, dim=[" + second_dim +
        "], keepdim=true)\ny: float32[4, 8] = div(e, t)\nreturn y\n");
    recognize_patterns(c, list_of(softmax));
    CHECK(first_problem(c.graph) == "");
    CHECK(c.stands_for.size() == c.graph.nodes.size());
    return graph_text(c.graph);
  };
  CHECK(recognized("1").find("y: float32[4, 8] = softmax(x, dim=1)") != std::string::npos);
  CHECK(recognized("0").find("softmax") == std::string::npos);
}

TEST_CASE("numbers are met exactly, or to a millionth, or as their dtype holds them") {
  const auto matches = [](const std::string& number, const std::string& in_pattern) {
    CanonicalGraph c = canonical_of("input x: float32[4]\na: float32[4] = mul(x, " + number +
                                    ")\nb: float32[4] = tanh(a)\nreturn b\n");
    return claims_of(c, "pattern t.p match tanh(mul(x, " + in_pattern + ")) becomes group") != "";
  };
  CHECK(matches("2", "2"));
  CHECK(matches("2.0", "2"));
  CHECK(!matches("2.0000001", "2"));
  CHECK(matches("0.7978845608028654", "0.79788456"));
  CHECK(!matches("0.798", "0.79788456"));
  CHECK(!matches("1.7", "1.702"));
}

TEST_CASE("higher priorities are tried first, and a node is in one claim at most") {
  const std::string graph =
      kInputs + "a: float16[4, 8] = silu(g)\nh: float16[4, 8] = mul(a, u)\nr: float16[4, 8] = relu(h)\nreturn r\n";
  const std::string both =
      "pattern t.small match mul(silu(g), u) becomes group\npattern t.large priority 1 match relu(mul(silu(g), u)) "
      "becomes group\n";
  CHECK(claims_in(graph, both) == "t.large{a h r}");
}

TEST_CASE("a group that would be several kernels is not claimed") {
  const std::string graph =
      "input x: float32[64, 64]\ninput w: float32[64, 64]\na: float32[64, 64] = matmul(x, w)\n"
      "b: float32[64, 64] = matmul(a, w)\nreturn b\n";
  const std::string pattern = "pattern t.two match matmul(matmul(x, w), w) ";
  CHECK(claims_in(graph, pattern + "becomes group") == "");
  CHECK(why_not(graph, pattern + "becomes group", "b").find("2 kernels") != std::string::npos);
}

TEST_CASE("a claim keeps to the limits of a group") {
  const std::string graph = kInputs + "a: float16[4, 8] = silu(g)\nh: float16[4, 8] = mul(a, u)\nreturn h\n";
  CanonicalGraph c = canonical_of(graph);
  CHECK(claim_patterns(c, list_of(kGlu), {.max_fused_ops = 1}).empty());
  CHECK(claim_patterns(c, list_of(kGlu), {.max_args = 2}).empty());
  CHECK(claim_patterns(c, list_of(kGlu), {.max_fused_ops = 2, .max_args = 3}).size() == 1);
}

TEST_CASE("a reduction of everything is none along dimensions that a name binds") {
  const std::string patterns =
      "pattern t.mean match div(sum(x, dim=d), n) where count(n, x, d) becomes mean(x, dim=d)\n"
      "pattern t.softmax match div(e: exp(x), sum(e, dim=d, keepdim=true)) becomes softmax(x, dim=d)\n";
  const auto recognized = [&](const std::string& nodes) {
    CanonicalGraph c = canonical_of("input x: float32[6, 20]\n" + nodes + "return y\n");
    recognize_patterns(c, list_of(patterns));
    CHECK(first_problem(c.graph) == "");
    return graph_text(c.graph);
  };
  CHECK(recognized("s: float32[] = sum(x)\ny: float32[] = div(s, 7)\n").find("mean") == std::string::npos);
  CHECK(recognized("s: float32[6] = sum(x, dim=[1])\ny: float32[6] = div(s, 20)\n").find("mean") != std::string::npos);
  CHECK(recognized("s: float32[6] = sum(x, dim=[1])\ny: float32[6] = div(s, 19)\n").find("mean") == std::string::npos);
  CHECK(recognized("e: float32[6, 20] = exp(x)\ns: float32[1, 1] = sum(e, keepdim=true)\n"
                   "y: float32[6, 20] = div(e, s)\n")
            .find("softmax") == std::string::npos);
}
