// What scales and shifts the channels of a product goes into its weights where they are known, and nowhere else.
#include "transforms/patterns/recognized.h"

using namespace fusec;
using namespace fusec::test;

namespace {

std::string numbers(int count, double first, double step) {
  std::string text = "[";
  for (int i = 0; i < count; ++i) text += (i ? ", " : "") + std::to_string(first + step * ((i * 7) % count));
  return text + "]";
}

// conv2d of 3 channels to 4, its weights given or not, and what a batch_norm takes.
std::string conv(const std::string& dtype, bool known, const std::string& rest) {
  const auto constant = [&](const std::string& name, const std::string& shape, int count, double first, double step) {
    return "constant " + name + ": " + dtype + "[" + shape + "]" + (known ? " = " + numbers(count, first, step) : "") +
           "\n";
  };
  return "model \"m\"\ninput x: " + dtype + "[2, 3, 5, 6]\n" + constant("w", "4, 3, 3, 3", 108, -0.5, 0.01) +
         constant("b", "4", 4, 0.1, 0.3) + constant("g", "4", 4, 0.5, 0.25) + constant("h", "4", 4, -1, 0.5) +
         constant("mu", "4", 4, -0.2, 0.15) + constant("var", "4", 4, 0.4, 0.2) + rest;
}

std::string ops_of(const std::string& text) {
  const Graph model = parse_graph_text(text);
  recognized(model);
  CanonicalGraph canonical = canonicalized(model);
  recognize_patterns(canonical, builtin_list());
  std::string ops;
  for (const Node& node : canonical.graph.nodes) ops += (ops.empty() ? "" : " ") + node.op->name;
  return ops;
}

const std::string kNorm = " = batch_norm(c, g, h, mu, var, eps=0.001)\nreturn y\n";

}  // namespace

TEST_CASE("a batch_norm goes into the weights and the bias of a convolution") {
  for (const char* dtype : {"float32", "float64"}) {
    const std::string type = dtype;
    const std::string y = "y: " + type + "[2, 4, 3, 4]" + kNorm, z = "y: " + type + "[2, 4, 5, 6]" + kNorm;
    CHECK(ops_of(conv(type, true, "c: " + type + "[2, 4, 3, 4] = conv2d(x, w, b)\n" + y)) == "conv2d");
    CHECK(ops_of(conv(type, true, "c: " + type + "[2, 4, 3, 4] = conv2d(x, w)\n" + y)) == "conv2d");
    CHECK(ops_of(conv(type, true, "c: " + type + "[2, 4, 5, 6] = conv2d(x, w, b, padding=[1, 1])\n" + z)) == "conv2d");
    CHECK(ops_of(conv(type, true, "c: " + type + "[2, 4, 5, 6] = conv2d(x, w, b, padding=\"same\")\n" + z)) ==
          "conv2d");
  }
  // Written out, too.
  CHECK(ops_of(conv("float32", true,
                    "c: float32[2, 4, 3, 4] = conv2d(x, w, b)\nm1: float32[4, 1, 1] = reshape(mu, shape=[4, 1, 1])\n"
                    "d: float32[2, 4, 3, 4] = sub(c, m1)\na: float32[4] = add(var, 0.001)\nr: float32[4] = rsqrt(a)\n"
                    "r1: float32[4, 1, 1] = reshape(r, shape=[4, 1, 1])\nn: float32[2, 4, 3, 4] = mul(d, r1)\n"
                    "return n\n"))
            .find("conv2d") == 0);
}

TEST_CASE("factors and divisors go into the weights") {
  const std::string c = "c: float32[2, 4, 3, 4] = conv2d(x, w, b)\n";
  CHECK(ops_of(conv("float32", true, c + "y: float32[2, 4, 3, 4] = mul(c, 0.25)\nreturn y\n")) == "conv2d");
  CHECK(ops_of(conv("float32", true, c + "y: float32[2, 4, 3, 4] = div(c, 3)\nreturn y\n")) == "conv2d");
  CHECK(ops_of(conv("float32", true,
                    c + "s: float32[4, 1, 1] = reshape(g, shape=[4, 1, 1])\ny: float32[2, 4, 3, 4] = mul(s, c)\n"
                        "return y\n")) == "conv2d");
  const std::string linear =
      "model \"m\"\ninput x: float32[5, 3]\nconstant w: float32[4, 3] = " + numbers(12, -1, 0.2) +
      "\nconstant b: float32[4] = " + numbers(4, 0, 0.3) + "\nconstant s: float32[4] = " + numbers(4, 0.5, 0.3) + "\n";
  CHECK(ops_of(linear + "c: float32[5, 4] = linear(x, w, b)\ny: float32[5, 4] = mul(c, s)\nreturn y\n") == "linear");
  CHECK(ops_of(linear + "c: float32[5, 4] = linear(x, w)\ny: float32[5, 4] = div(c, s)\nreturn y\n") == "linear");
  CHECK(ops_of(linear + "c: float32[5, 4] = linear(x, w)\ny: float32[5, 4] = mul(c, 0.5)\nreturn y\n") == "linear");
}

TEST_CASE("weights in 16 bits are folded, too, where their dtype holds the result") {
  for (const char* dtype : {"float16", "bfloat16"}) {
    const std::string type = dtype, c = "c: " + type + "[2, 4, 3, 4] = conv2d(x, w, b)\n";
    CHECK(ops_of(conv(type, true, c + "y: " + type + "[2, 4, 3, 4]" + kNorm)) == "conv2d");
    CHECK(ops_of(conv(type, true, c + "y: " + type + "[2, 4, 3, 4] = mul(c, 0.3)\nreturn y\n")) == "conv2d");
  }
  // float16 would overflow, or lose the weights below its least numbers; bfloat16 does neither.
  for (const char* factor : {"300000.0", "1e-6"}) {
    const auto scaled = [&](const std::string& type) {
      return ops_of(conv(type, true,
                         "c: " + type + "[2, 4, 3, 4] = conv2d(x, w)\ny: " + type + "[2, 4, 3, 4] = mul(c, " + factor +
                             ")\nreturn y\n"));
    };
    CHECK(scaled("float16") == "conv2d mul");
    CHECK(scaled("bfloat16") == "conv2d");
  }
}

TEST_CASE("weights that come at run time or from a file are folded before the launches") {
  const auto y = [](const std::string& type) { return "y: " + type + "[2, 4, 3, 4]" + kNorm; };
  for (const char* dtype : {"float32", "bfloat16"}) {
    const std::string type = dtype, c = "c: " + type + "[2, 4, 3, 4] = conv2d(x, w, b)\n";
    CHECK(ops_of(conv(type, false, c + y(type))) == "unsqueeze batch_norm squeeze unsqueeze batch_norm squeeze conv2d");
    CHECK(ops_of(conv(type, false,
                      c + "s: " + type + "[4, 1, 1] = reshape(g, shape=[4, 1, 1])\ny: " + type +
                          "[2, 4, 3, 4] = mul(c, s)\nreturn y\n")) == "reshape mul mul conv2d");
    // A factor for all is an epilogue: no second copy of the weights for it.
    CHECK(ops_of(conv(type, false, c + "y: " + type + "[2, 4, 3, 4] = mul(c, 0.25)\nreturn y\n")) == "conv2d mul");
  }
  // What is made of the weights before counts as them; an input is none of them.
  CHECK(ops_of(conv("float32", false,
                    "t: float32[4, 3, 3, 3] = abs(w)\nc: float32[2, 4, 3, 4] = conv2d(x, t)\n" + y("float32"))) ==
        "abs unsqueeze batch_norm squeeze batch_norm squeeze conv2d");
  CHECK(ops_of("model \"m\"\ninput x: float32[5, 3]\ninput w: float32[4, 3]\nconstant s: float32[4]\n"
               "c: float32[5, 4] = linear(x, w)\ny: float32[5, 4] = mul(c, s)\nreturn y\n") == "linear mul");
  // Whether float16 holds them is known only then.
  CHECK(ops_of(conv("float16", false, "c: float16[2, 4, 3, 4] = conv2d(x, w, b)\n" + y("float16"))) ==
        "conv2d batch_norm");
}

TEST_CASE("transposed convolutions have their output channels second") {
  const std::string inputs =
      "model \"m\"\ninput x: bfloat16[2, 3, 5, 6]\ninput z: bfloat16[2, 6, 5, 6]\n"
      "constant w: bfloat16[3, 4, 3, 3] = " +
      numbers(108, -0.5, 0.01) + "\nconstant v: bfloat16[6, 4, 3, 3] = " + numbers(216, -0.5, 0.005) +
      "\nconstant s: bfloat16[4, 1, 1] = " + numbers(4, 0.5, 0.25) +
      "\nconstant t: bfloat16[8, 1, 1] = " + numbers(8, 0.5, 0.25) + "\n";
  CHECK(ops_of(inputs + "c: bfloat16[2, 4, 11, 13] = conv_transpose2d(x, w, stride=[2, 2])\n"
                        "y: bfloat16[2, 4, 11, 13] = mul(c, s)\nreturn y\n") == "conv_transpose2d");
  CHECK(ops_of(inputs + "c: bfloat16[2, 8, 7, 8] = conv_transpose2d(z, v, groups=2)\n"
                        "y: bfloat16[2, 8, 7, 8] = mul(c, t)\nreturn y\n") == "conv_transpose2d");
}

TEST_CASE("the second dimension of a result is not always its channels") {
  // Without a batch it is a position, of a linear over rows of rows it is a row.
  const std::string norm = "constant g: float32[4] = " + numbers(4, 0.5, 0.25) +
                           "\nconstant mu: float32[4] = " + numbers(4, -0.2, 0.15) +
                           "\nconstant var: float32[4] = " + numbers(4, 0.4, 0.2) + "\n";
  CHECK(ops_of("model \"m\"\ninput x: float32[3, 6]\nconstant w: float32[4, 3, 3] = " + numbers(36, -0.5, 0.03) + "\n" +
               norm +
               "c: float32[4, 4] = conv1d(x, w)\ny: float32[4, 4] = batch_norm(c, g, null, mu, var)\nreturn y\n") ==
        "conv1d batch_norm");
  CHECK(ops_of("model \"m\"\ninput x: float32[4, 6]\nconstant w: float32[4, 4, 3] = " + numbers(48, -0.5, 0.03) +
               "\nconstant s: float32[1, 4] = " + numbers(4, 0.5, 0.25) +
               "\nc: float32[4, 4] = conv1d(x, w)\ny: float32[4, 4] = mul(c, s)\nreturn y\n") == "conv1d mul");
  CHECK(ops_of("model \"m\"\ninput x: float32[2, 4, 3]\nconstant w: float32[4, 3] = " + numbers(12, -0.5, 0.1) + "\n" +
               norm +
               "c: float32[2, 4, 4] = linear(x, w)\ny: float32[2, 4, 4] = batch_norm(c, g, null, mu, var)\n"
               "return y\n") == "linear batch_norm");
}

TEST_CASE("what is needed elsewhere is not folded") {
  const std::string c = "c: float32[2, 4, 3, 4] = conv2d(x, w, b)\n";
  CHECK(ops_of(conv("float32", true, c + "y: float32[2, 4, 3, 4] = batch_norm(c, g, h, mu, var)\nreturn y, c\n")) ==
        "conv2d batch_norm");
  CHECK(ops_of(conv("float32", true,
                    c + "e: float32[2, 4, 3, 4] = exp(c)\ny: float32[2, 4, 3, 4] = mul(c, 2)\n"
                        "return y, e\n")) == "conv2d mul exp");
  // Factors along a row are none of the channels.
  CHECK(ops_of(
            "model \"m\"\ninput x: float32[2, 3, 6, 6]\nconstant w: float32[4, 3, 3, 3] = " + numbers(108, -1, 0.02) +
            "\nconstant s: float32[4] = " + numbers(4, 0.5, 0.3) +
            "\nc: float32[2, 4, 4, 4] = conv2d(x, w)\ny: float32[2, 4, 4, 4] = mul(c, s)\nreturn y\n") == "conv2d mul");
}
