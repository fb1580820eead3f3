#include "transforms/patterns/builtin_claims.h"

using namespace fusec;

namespace {

const std::string kLinear =
    "input x: float16[6, 16]\ninput r: float16[6, 24]\nconstant w: float16[24, 16]\nconstant b: float16[24]\n"
    "constant c: float16[6, 1]\nconstant s: float32[1]\nconstant rs: float32[6]\n";

std::string linear(const std::string& nodes) {
  return kLinear + "p: float16[6, 24] = linear(x, w)\n" + nodes;
}

}  // namespace

TEST_CASE("an elementwise epilogue goes with its product: bias along either axis, scale, activation, residual, cast") {
  CHECK(claimed(linear("y: float16[6, 24] = add(p, b)\nreturn y\n")) == "linear_epilogue{p y}");
  CHECK(claimed(linear("y: float16[6, 24] = add(c, p)\nreturn y\n")) == "linear_epilogue{p y}");
  CHECK(
      claimed(linear("m: float16[6, 24] = mul(p, 0.5)\na: float16[6, 24] = gelu(m)\nd: float16[6, 24] = add(a, r)\n"
                     "k: float16[6, 24] = clamp(d, min=-3.0, max=3.0)\ny: float32[6, 24] = cast(k, dtype=\"float32\")\n"
                     "return y\n")) == "linear_epilogue{p m a d k y}");
  CHECK(claimed(linear("e: float16[6, 24] = sigmoid(p)\nm: float16[6, 24] = mul(p, e)\ny: float16[6, 24] = mul(m, r)\n"
                       "return y\n")) == "linear_epilogue{p e m y}");
}

TEST_CASE("quantized on the way out, by tensor and by row") {
  CHECK(claimed(linear("a: float16[6, 24] = relu(p)\ny: int8[6, 24] = quantize(a, s, dtype=\"int8\")\nreturn y\n")) ==
        "linear_epilogue{p a y}");
  CHECK(claimed(linear("y: int8[6, 24] = quantize(p, rs, dtype=\"int8\", axis=0)\nreturn y\n")) ==
        "linear_epilogue{p y}");
}

TEST_CASE("what the epilogue begins with may be a second output, and be read by what comes later") {
  CHECK(claimed(linear("y: float16[6, 24] = gelu(p)\nreturn y, p\n")) == "linear_epilogue{p y}");
  CHECK(claimed(linear("y: float16[6, 24] = gelu(p)\nt: float16[6, 24] = softmax(p, dim=1)\nreturn y, t\n")) ==
        "linear_epilogue{p y}");
}

TEST_CASE("a product does not wait in its epilogue for what is made of one beside it") {
  const std::string beside = "k: float16[6, 24] = linear(x, w)\nt: float16[6, 1] = sum(k, dim=[1], keepdim=true)\n";
  CHECK(claimed(linear(beside + "y: float16[6, 24] = sub(p, t)\nreturn y\n")) == "");
  const std::string before = "k: float16[6, 24] = linear(r, u)\nt: float16[6, 1] = sum(k, dim=[1], keepdim=true)\n";
  CHECK(claimed("constant u: float16[24, 24]\n" + linear(before + "y: float16[6, 24] = sub(p, t)\nreturn y\n")) ==
        "linear_epilogue{p y}");
}

TEST_CASE("other products and convolutions") {
  const std::string inputs =
      "input x: float32[2, 5, 6]\ninput y: float32[2, 6, 7]\ninput i: float32[2, 3, 8, 8]\n"
      "constant k: float32[4, 3, 3, 3]\nconstant v: float32[7]\ninput a: float32[5, 6]\ninput z: float32[6, 7]\n";
  CHECK(claimed(inputs + "p: float32[2, 5, 7] = bmm(x, y)\nq: float32[2, 5, 7] = tanh(p)\nreturn q\n") ==
        "bmm_epilogue{p q}");
  CHECK(claimed(inputs + "p: float32[2, 5, 7] = matmul(x, y)\nq: float32[2, 5, 7] = mul(p, 2)\nreturn q\n") ==
        "matmul_epilogue{p q}");
  CHECK(claimed(inputs + "p: float32[5, 7] = addmm(v, a, z)\nq: float32[5, 7] = relu(p)\nreturn q\n") ==
        "addmm_epilogue{p q}");
  CHECK(claimed(inputs + "p: float32[2, 4, 6, 6] = conv2d(i, k)\nq: float32[2, 4, 6, 6] = relu(p)\nreturn q\n") ==
        "conv_epilogue{p q}");
}

TEST_CASE("a weight in few bits is dequantized as it is read") {
  CHECK(claimed("input x: float16[3, 34]\nconstant w: int8[65, 34]\nconstant s: float16[65]\n"
                "d: float16[65, 34] = dequantize(w, s, dtype=\"float16\", axis=0)\np: float16[3, 65] = linear(x, d)\n"
                "y: float16[3, 65] = gelu(p)\nreturn y\n") == "weight_only_linear{d p y}");
}

TEST_CASE("a chain does not take what only reshapes, nor read what it makes itself by another way") {
  CHECK(claimed(linear("y: float16[144] = reshape(p, shape=[144])\nreturn y\n")) == "");
  // The softmax of the product stands between the product and the sum: a circle.
  const std::string circle = linear("t: float16[6, 24] = softmax(p, dim=1)\ny: float16[6, 24] = add(p, t)\nreturn y\n");
  CHECK(claimed(circle) == "");
  CHECK(why_not_claimed(circle, "linear_epilogue", "y").find("\"p\" is read by \"t\" as well") != std::string::npos);
}
