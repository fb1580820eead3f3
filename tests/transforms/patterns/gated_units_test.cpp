#include "transforms/patterns/builtin_claims.h"

using namespace fusec;

namespace {

// The nodes of a unit over inputs g and u, every line "name = op(...)", all of one type.
std::string unit(const std::string& nodes, const std::string& dtype = "float16") {
  std::string text, type = dtype + "[4, 8]";
  for (const char* input : {"g", "u", "r"}) text += "input " + std::string(input) + ": " + type + "\n";
  std::size_t at = 0;
  std::string last;
  while (at < nodes.size()) {
    const std::size_t end = std::min(nodes.find("; ", at), nodes.size());
    const std::string line = nodes.substr(at, end - at);
    const std::size_t equals = line.find(" =");
    last = line.substr(0, equals);
    text += (last.find(':') == std::string::npos ? last + ": " + type : last) + line.substr(equals) + "\n";
    at = end + 2;
  }
  return text + "return " + last.substr(0, last.find(':')) + "\n";
}

const std::string kProducts =
    "input x: bfloat16[6, 16]\nconstant wg: bfloat16[24, 16]\nconstant wu: bfloat16[24, 16]\n"
    "constant w: bfloat16[48, 16]\n";

}  // namespace

TEST_CASE("silu(gate) * up is claimed however it is written") {
  CHECK(claimed(unit("a = silu(g); h = mul(a, u)")) == "swiglu{a h}");
  CHECK(claimed(unit("a = silu(g); h = mul(u, a)", "float32")) == "swiglu{a h}");
  CHECK(claimed(unit("s = sigmoid(g); a = mul(g, s); h = mul(a, u)", "bfloat16")) == "swiglu{s a h}");
  CHECK(claimed(unit("s = sigmoid(g); p = mul(g, u); h = mul(p, s)")) == "swiglu{s p h}");
  CHECK(claimed(unit("s = sigmoid(g); p = mul(s, u); h = mul(g, p)")) == "swiglu{s p h}");
  CHECK(claimed(unit("n = neg(g); e = exp(n); d = add(e, 1); a = div(g, d); h = mul(a, u)")) == "swiglu{n e d a h}");
  CHECK(claimed(unit("n = neg(g); e = exp(n); d = add(1, e); p = mul(g, u); h = div(p, d)")) == "swiglu{n e d p h}");
  CHECK(claimed(unit("n = neg(g); e = exp(n); d = add(1.0, e); s = reciprocal(d); a = mul(s, g); h = mul(a, u)")) ==
        "swiglu{n e d s a h}");
  CHECK(claimed(unit("b = mul(g, 1.702); s = sigmoid(b); a = mul(g, s); h = mul(a, u)")) ==
        "swiglu{b s a h alpha=1.702}");
}

TEST_CASE("casts and reshapes that keep the meaning stand anywhere") {
  CHECK(claimed(unit("w: float32[4, 8] = cast(g, dtype=\"float32\"); s: float32[4, 8] = sigmoid(w); "
                     "n = cast(s, dtype=\"float16\"); a = mul(g, n); h = mul(a, u)")) == "swiglu{w s n a h}");
  CHECK(claimed(unit("w: float32[4, 8] = cast(g, dtype=\"float32\"); s: float32[4, 8] = silu(w); "
                     "n = cast(s, dtype=\"float16\"); h = mul(n, u)")) == "swiglu{w s n h}");
  CHECK(claimed(unit("v: float16[32] = reshape(g, shape=[32]); s: float16[32] = silu(v); "
                     "n = reshape(s, shape=[4, 8]); h = mul(n, u)")) == "swiglu{v s n h}");
  // To eight bits and back is another value.
  const std::string lossy = unit(
      "s = silu(g); q: float8_e4m3fn[4, 8] = cast(s, dtype=\"float8_e4m3fn\"); n = cast(q, dtype=\"float16\"); "
      "h = mul(n, u)");
  CHECK(claimed(lossy) == "");
  CHECK(why_not_claimed(lossy, "swiglu", "h") == "");
}

TEST_CASE("gates by gelu, relu and sigmoid") {
  CHECK(claimed(unit("a = gelu(g); h = mul(a, u)")) == "geglu{a h}");
  CHECK(claimed(unit("a = gelu(g, approximate=\"tanh\"); h = mul(a, u)")) == "geglu_tanh{a h}");
  CHECK(claimed(unit("b = mul(g, 0.7071067811865476); e = erf(b); o = add(e, 1); k = mul(g, 0.5); a = mul(k, o); "
                     "h = mul(a, u)")) == "geglu{b e o k a h}");
  CHECK(claimed(unit("p = pow(g, 3); c = mul(p, 0.044715); s = add(g, c); t = mul(s, 0.7978845608028654); "
                     "e = tanh(t); o = add(e, 1); k = mul(g, 0.5); a = mul(k, o); h = mul(a, u)",
                     "float32")) == "geglu_tanh{p c s t e o k a h}");
  CHECK(claimed(unit("q = mul(g, g); p = mul(q, g); c = mul(p, 0.044715); s = add(g, c); t = mul(s, 0.7978845608); "
                     "e = tanh(t); o = add(e, 1); k = mul(g, o); a = mul(k, 0.5); h = mul(a, u)")) ==
        "geglu_tanh{q p c s t e o k a h}");
  // Another factor is another function.
  CHECK(claimed(unit("b = mul(g, 0.7); e = erf(b); o = add(e, 1); k = mul(g, 0.5); a = mul(k, o); h = mul(a, u)")) ==
        "");
  CHECK(claimed(unit("a = relu(g); h = mul(a, u)")) == "reglu{a h}");
  CHECK(claimed(unit("a = relu(g); b = square(a); h = mul(b, u)")) == "relu_squared_glu{a b h}");
  CHECK(claimed(unit("a = relu(g); b = mul(a, a); h = mul(b, u)")) == "relu_squared_glu{a b h}");
  CHECK(claimed(unit("a = sigmoid(g); h = mul(a, u)")) == "glu{a h}");
}

TEST_CASE("clamped gates, an offset of up, interleaved and swapped halves are attributes") {
  const std::string clamped =
      "input x: bfloat16[4, 16]\ng: bfloat16[4, 8] = slice(x, dim=1, start=0, step=2)\n"
      "u: bfloat16[4, 8] = slice(x, dim=1, start=1, step=2)\nc: bfloat16[4, 8] = clamp(g, max=7.0)\n"
      "d: bfloat16[4, 8] = clamp(u, min=-7.0, max=LIMIT)\no: bfloat16[4, 8] = add(d, 1)\n"
      "b: bfloat16[4, 8] = mul(c, 1.702)\ns: bfloat16[4, 8] = sigmoid(b)\na: bfloat16[4, 8] = mul(c, s)\n"
      "h: bfloat16[4, 8] = mul(o, a)\nreturn h\n";
  const auto with = [&](const std::string& limit) {
    std::string text = clamped;
    return text.replace(text.find("LIMIT"), 5, limit);
  };
  CHECK(claimed(with("7.0")) == "swiglu{g u c d o b s a h alpha=1.702 limit=7 up_offset=1 interleaved=true}");
  CHECK(claimed(with("6.0")) == "");  // not a published variant: left alone
  // Limits are a model's own; a sigmoid's factor and an offset are published ones or none.
  const auto variant = [&](const std::string& factor, const std::string& limit, const std::string& offset) {
    std::string text = with(limit);
    for (std::size_t at; (at = text.find("7.0")) != std::string::npos;) text.replace(at, 3, limit);
    text.replace(text.find("1.702"), 5, factor);
    return text.replace(text.find("add(d, 1)"), 9, "add(d, " + offset + ")");
  };
  CHECK(claimed(variant("1.702", "10", "1")) ==
        "swiglu{g u c d o b s a h alpha=1.702 limit=10 up_offset=1 interleaved=true}");
  CHECK(claimed(variant("1.7", "10", "1")) == "");
  CHECK(why_not_claimed(variant("1.7", "10", "1"), "swiglu", "h") ==
        "equals(alpha, 1, 1.702) does not hold: it is 1.7");
  CHECK(why_not_claimed(variant("1.702", "10", "0.5"), "swiglu", "h") ==
        "equals(up_offset, 1) does not hold: it is 0.5");
  CHECK(why_not_claimed(variant("1.702", "0", "1"), "swiglu", "h") == "greater(limit, 0) does not hold");
  CHECK(claimed(unit("b = mul(g, 1.7); s = sigmoid(b); a = mul(g, s); h = mul(a, u)")) == "");
  CHECK(why_not_claimed(unit("b = mul(g, 1.7); s = sigmoid(b); a = mul(g, s); h = mul(a, u)"), "swiglu", "h") ==
        "equals(alpha, 1, 1.702) does not hold: it is 1.7");
  const std::string halves =
      "input x: float16[4, 16]\np.0: float16[4, 8], p.1: float16[4, 8] = split(x, dim=1, split_sizes=[8, 8]) as p\n";
  CHECK(claimed(halves + "a: float16[4, 8] = silu(p.0)\nh: float16[4, 8] = mul(a, p.1)\nreturn h\n") ==
        "swiglu{p a h}");
  CHECK(claimed(halves + "a: float16[4, 8] = silu(p.1)\nh: float16[4, 8] = mul(a, p.0)\nreturn h\n") ==
        "swiglu{p a h swapped=true}");
}

TEST_CASE("two products of one operand and the unit upon them are one claim") {
  const std::string two = kProducts + "g: bfloat16[6, 24] = linear(x, wg)\nu: bfloat16[6, 24] = linear(x, wu)\n";
  CHECK(claimed(two + "a: bfloat16[6, 24] = silu(g)\nh: bfloat16[6, 24] = mul(a, u)\nreturn h\n") ==
        "dual_gemm_swiglu{g u a h}");
  CHECK(claimed(two + "h: bfloat16[6, 24] = swiglu(g, u)\nreturn h\n") == "dual_gemm_swiglu{g u h}");
  CHECK(claimed(two + "h: bfloat16[6, 24] = geglu(g, u, approximate=\"tanh\")\nreturn h\n") ==
        "dual_gemm_geglu_tanh{g u h approximate=tanh}");
  CHECK(claimed(two + "a: bfloat16[6, 24] = gelu(g)\nh: bfloat16[6, 24] = mul(a, u)\nreturn h\n") ==
        "dual_gemm_geglu{g u a h}");
  CHECK(claimed(two + "a: bfloat16[6, 24] = relu(g)\nh: bfloat16[6, 24] = mul(u, a)\nreturn h\n") ==
        "dual_gemm_reglu{g u a h}");
  CHECK(claimed(two + "a: bfloat16[6, 24] = sigmoid(g)\nh: bfloat16[6, 24] = mul(u, a)\nreturn h\n") ==
        "dual_gemm_glu{g u a h}");
  CHECK(claimed(two + "a: bfloat16[6, 24] = relu(g)\nb: bfloat16[6, 24] = square(a)\nh: bfloat16[6, 24] = mul(u, b)\n"
                      "return h\n") == "dual_gemm_relu_squared{g u a b h}");
  CHECK(claimed(kProducts + "pg: bfloat16[16, 24] = permute(wg, dims=[1, 0])\ng: bfloat16[6, 24] = matmul(x, pg)\n"
                            "pu: bfloat16[16, 24] = transpose(wu, dim0=0, dim1=1)\nu: bfloat16[6, 24] = matmul(x, pu)\n"
                            "a: bfloat16[6, 24] = silu(g)\nh: bfloat16[6, 24] = mul(a, u)\nreturn h\n") ==
        "dual_gemm_swiglu{pg g pu u a h}");
}

TEST_CASE("a product whose columns are gate and up is one claim with the unit upon it") {
  const std::string merged = kProducts + "m: bfloat16[6, 48] = linear(x, w)\n";
  CHECK(claimed(merged + "p.0: bfloat16[6, 24], p.1: bfloat16[6, 24] = chunk(m, chunks=2, dim=-1) as p\n"
                         "a: bfloat16[6, 24] = silu(p.1)\nh: bfloat16[6, 24] = mul(a, p.0)\nreturn h\n") ==
        "dual_gemm_swiglu{m p a h swapped=true}");
  CHECK(claimed(merged + "v: bfloat16[6, 2, 24] = reshape(m, shape=[6, 2, 24])\n"
                         "g: bfloat16[6, 24] = select(v, dim=1, index=0)\n"
                         "u: bfloat16[6, 24] = select(v, dim=1, index=1)\n"
                         "a: bfloat16[6, 24] = silu(g)\nh: bfloat16[6, 24] = mul(a, u)\nreturn h\n") ==
        "dual_gemm_swiglu{m v g u a h}");
  CHECK(claimed(merged + "h: bfloat16[6, 24] = swiglu(m, interleaved=true)\nreturn h\n") ==
        "dual_gemm_swiglu{m h interleaved=true}");
  // Halves of the rows are gate and up of other rows: no dual product.
  const std::string rows = merged +
                           "p.0: bfloat16[3, 48], p.1: bfloat16[3, 48] = chunk(m, chunks=2, dim=0) as p\n"
                           "a: bfloat16[3, 48] = silu(p.0)\nh: bfloat16[3, 48] = mul(a, p.1)\nreturn h\n";
  CHECK(claimed(rows).find("dual_gemm") == std::string::npos);
  CHECK(why_not_claimed(rows, "dual_gemm_swiglu", "h") == "same_rows(gate, merged) does not hold");
}

TEST_CASE(
    "quantized products have the unit upon them, and the quantization behind it; the activation alone leaves them") {
  const std::string text =
      "input x: int8[6, 16]\nconstant wg: int8[24, 16]\nconstant wu: int8[24, 16]\nconstant sg: float32[24]\n"
      "constant su: float32[24]\nconstant xs: float32[1]\nconstant hs: float32[1]\n"
      "g: float16[6, 24] = static_quant_linear(x, wg, sg, xs, out_dtype=\"float16\")\n"
      "u: float16[6, 24] = static_quant_linear(x, wu, su, xs, out_dtype=\"float16\")\n"
      "a: float16[6, 24] = silu(g)\nh: float16[6, 24] = mul(a, u)\n";
  CHECK(claimed(text + "return h\n") == "dual_static_quant_linear{g u a h}");
  CHECK(claimed(text + "q: int8[6, 24] = quantize(h, hs, dtype=\"int8\")\nreturn q\n") ==
        "dual_static_quant_linear{g u a h q}");
  const std::string alone =
      "input q: int8[4, 8]\ninput u: float16[4, 8]\nconstant s: float32[1]\n"
      "g: float16[4, 8] = dequantize(q, s, dtype=\"float16\")\na: float16[4, 8] = silu(g)\n"
      "h: float16[4, 8] = mul(a, u)\nreturn h\n";
  CHECK(claimed(alone) == "");
  CHECK(why_not_claimed(alone, "swiglu", "h") == "not quantized(gate) does not hold");
}

TEST_CASE(
    "what is needed outside, a gate used twice, broadcast gates and circles are no gated units, and it is said why") {
  const std::string output =
      "input g: float16[4, 8]\ninput u: float16[4, 8]\na: float16[4, 8] = silu(g)\n"
      "h: float16[4, 8] = mul(a, u)\n";
  CHECK(claimed(output + "return h, a\n") == "");
  CHECK(why_not_claimed(output + "return h, a\n", "swiglu", "h") == "\"a\" is an output of the model as well");
  const std::string used = output + "e: float16[4, 8] = exp(a)\nreturn h, e\n";
  CHECK(claimed(used) == "");
  CHECK(why_not_claimed(used, "swiglu", "h") == "\"a\" is read by \"e\" as well");
  const std::string twice = unit("a = silu(g); h = mul(a, g)");
  CHECK(claimed(twice) == "");
  CHECK(why_not_claimed(twice, "swiglu", "h") == "independent(gate, up) does not hold");
  const std::string row =
      "input g: float16[4, 1]\ninput u: float16[4, 8]\na: float16[4, 1] = silu(g)\n"
      "h: float16[4, 8] = mul(a, u)\nreturn h\n";
  CHECK(claimed(row) == "");
  CHECK(why_not_claimed(row, "swiglu", "h") == "same_size(gate, up) does not hold");
  const std::string circle = kProducts +
                             "g: bfloat16[6, 24] = linear(x, wg)\nt: bfloat16[6, 24] = softmax(g, dim=1)\n"
                             "a: bfloat16[6, 24] = silu(g)\nh: bfloat16[6, 24] = mul(a, t)\nreturn h\n";
  CHECK(claimed(circle).find("dual_gemm") == std::string::npos);
  const std::string gate_output = kProducts +
                                  "g: bfloat16[6, 24] = linear(x, wg)\nu: bfloat16[6, 24] = linear(x, wu)\n"
                                  "a: bfloat16[6, 24] = silu(g)\nh: bfloat16[6, 24] = mul(a, u)\nreturn h, g\n";
  CHECK(claimed(gate_output).find("dual_gemm") == std::string::npos);
  // Said although another pattern has claimed the nodes, at the unit and at what it is made of.
  for (const char* node : {"h", "a", "g"}) {
    CAPTURE(node);
    CHECK(why_not_claimed(gate_output, "dual_gemm_swiglu", node) == "\"g\" is an output of the model as well");
  }
  const std::string one_after_the_other =
      kProducts + "constant wd: bfloat16[24, 24]\n" +
      "g: bfloat16[6, 24] = linear(x, wg)\na: bfloat16[6, 24] = silu(g)\n"
      "u: bfloat16[6, 24] = linear(a, wd)\nh: bfloat16[6, 24] = mul(a, u)\nreturn h\n";
  CHECK(claimed(one_after_the_other).find("dual_gemm") == std::string::npos);
  CHECK(why_not_claimed(one_after_the_other, "dual_gemm_swiglu", "h") ==
        "x is the input \"x\" in one place and \"a\", a silu in another");
  const std::string other_rows =
      "input x: float16[6, 16]\ninput o: int32[2]\ninput p: int32[2]\nconstant wg: float16[2, 16, 8]\n"
      "constant wu: float16[2, 16, 8]\ng: float16[6, 8] = grouped_matmul(x, wg, o)\n"
      "u: float16[6, 8] = grouped_matmul(x, wu, p)\nh: float16[6, 8] = swiglu(g, u)\nreturn h\n";
  CHECK(claimed(other_rows).find("dual_grouped") == std::string::npos);
  CHECK(why_not_claimed(other_rows, "dual_grouped_matmul", "h").find("offsets is the input \"o\"") == 0);
  CHECK(claimed(unit("a = silu(g); h = mul(a, u)", "float64")) == "");
}

TEST_CASE("what stands on a product and is nearly a gated unit tells by what, whatever else claims the product") {
  const auto why = [](const std::string& dtype, const std::string& nodes, const char* pattern, const char* node = "h") {
    const auto of = [&](const char* shape) { return dtype + shape; };
    return why_not_claimed("input x: " + of("[8, 16]") + "\ninput wg: " + of("[32, 16]") +
                               "\ninput wu: " + of("[32, 16]") + "\ninput s: float32[1]\ng: " + of("[8, 32]") +
                               " = linear(x, wg)\nu: " + of("[8, 32]") + " = linear(x, wu)\n" + nodes +
                               "h: " + of("[8, 32]") + " = mul(a, u)\nreturn h\n",
                           pattern, node);
  };
  const std::string quantized =
      "q: int8[8, 32] = quantize(g, s, dtype=\"int8\")\nd: float16[8, 32] = dequantize(q, s, dtype=\"float16\")\n"
      "a: float16[8, 32] = silu(d)\n";
  CHECK(why("float16", quantized, "swiglu") == "not quantized(gate) does not hold");
  CHECK(why("float16", quantized, "dual_gemm_swiglu") ==
        "\"d\", a dequantize, makes a quantized operand of it and stands between it and \"g\"");
  CHECK(why("bfloat16",
            "c: float16[8, 32] = cast(g, dtype=\"float16\")\nb: float16[8, 32] = silu(c)\n"
            "a: bfloat16[8, 32] = cast(b, dtype=\"bfloat16\")\n",
            "dual_gemm_swiglu") ==
        "\"a\", a cast from float16 to bfloat16 that may change the value, stands between it and \"b\"");
  CHECK(why("float32", "a: float32[8, 32] = maximum(g, 0.001)\n", "dual_gemm_reglu") ==
        "found the number 0.001, expected the number 0");
  CHECK(why("float32",
            "t: float32[8, 32] = mul(g, 0.7071067811865476)\ne: float32[8, 32] = erf(t)\n"
            "o: float32[8, 32] = add(e, 1)\nf: float32[8, 32] = mul(g, 0.4999)\na: float32[8, 32] = mul(f, o)\n",
            "dual_gemm_geglu") == "found the number 0.4999, expected the number 0.5");
  CHECK(why("float32", "c: bool[8, 32] = gt(g, 0)\na: float32[8, 32] = where(c, g, 0)\n", "relu_of_integers", "a")
            .find("of a NaN") != std::string::npos);
}
