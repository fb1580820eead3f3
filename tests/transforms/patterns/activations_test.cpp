// Activations written out: each form becomes the op, and means the same; what is near does not.
#include "transforms/patterns/recognized.h"

using namespace fusec;
using namespace fusec::test;

namespace {

struct Form {
  const char *nodes, *becomes;
};

void check_forms(const char* inputs, std::initializer_list<Form> forms) {
  for (const Form& form : forms) {
    CAPTURE(form.nodes);
    CHECK(y_after(inputs, form.nodes) == form.becomes);
  }
}

}  // namespace

TEST_CASE("sigmoid and silu in every form") {
  for (const char* inputs : {"x float32 4,8", "x float16 4,8", "x bfloat16 4,8"})
    check_forms(inputs, {{"n = neg x; e = exp n; a = add e 1; y = reciprocal a", "sigmoid(x)"},
                         {"n = neg x; e = exp n; a = add 1.0 e; y = div 1 a", "sigmoid(x)"},
                         {"n = mul x -1; e = exp n; a = add 1.0 e; y = div 1 a", "sigmoid(x)"},
                         {"h = mul x 0.5; t = tanh h; a = add t 1; y = mul a 0.5", "sigmoid(x)"},
                         {"s = sigmoid x; y = mul s x", "silu(x)"},
                         {"n = neg x; e = exp n; a = add e 1; y = div x a", "silu(x)"},
                         {"n = neg x; e = exp n; a = add e 1; s = reciprocal a; y = mul x s", "silu(x)"}});
}

TEST_CASE("relu and relu6 in every form that keeps NaN") {
  check_forms("x float32 4,8", {{"y = maximum x 0", "relu(x)"},
                                {"y = maximum 0.0 x", "relu(x)"},
                                {"y = clamp x {\"min\": 0}", "relu(x)"},
                                {"c = lt x 0; y = where c 0 x", "relu(x)"},
                                {"c = gt 0 x; y = where c 0.0 x", "relu(x)"},
                                {"y = clamp x {\"min\": 0, \"max\": 6}", "relu6(x)"},
                                {"r = relu x; y = minimum r 6", "relu6(x)"},
                                {"r = maximum x 0; y = clamp r {\"max\": 6.0}", "relu6(x)"},
                                {"y = hardtanh x {\"min_val\": 0, \"max_val\": 6}", "relu6(x)"}});
  check_forms("x int32 4,8", {{"c = gt x 0; y = where c x 0", "relu(x)"}, {"c = le x 0; y = where c 0 x", "relu(x)"}});
  // where(x > 0, x, 0) makes 0 of NaN, which relu keeps.
  CHECK(y_after("x float32 4,8", "c = gt x 0; y = where c x 0") == "where(c, x, 0)");
  CHECK(why_no("fusec.relu_of_integers", "x float32 4,8", "c = gt x 0; y = where c x 0").find("never_nan(x)") == 0);
  // where(x <= 0, 0, x) makes +0 of -0, which relu keeps.
  CHECK(y_after("x float32 4,8", "c = le x 0; y = where c 0.0 x") == "where(c, 0.0, x)");
  CHECK(y_after("x float32 4,8", "y = clamp x {\"min\": 0, \"max\": 7}").find("clamp") == 0);
  CHECK(y_after("x float32 4,8", "y = maximum x 1").find("maximum") == 0);
}

TEST_CASE("hardsigmoid, hardswish, leaky_relu, elu, selu, softplus, mish, log_sigmoid") {
  const char* r6 = "a = add x 3; b = clamp a {\"min\": 0}; c = clamp b {\"max\": 6}; ";
  const auto after = [&](const std::string& nodes) { return y_after("x float32 4,8", r6 + nodes); };
  CHECK(after("y = div c 6") == "hardsigmoid(x)");
  CHECK(after("y = mul c 0.16666666666666666") == "hardsigmoid(x)");
  CHECK(after("m = mul x c; y = div m 6") == "hardswish(x)");
  CHECK(after("m = div c 6; y = mul x m") == "hardswish(x)");
  CHECK(after("y = div c 5") == "div(c, 5)");
  check_forms("x float32 4,8",
              {{"m = mul x 0.02; c = gt x 0; y = where c x m", "leaky_relu(x, negative_slope=0.02)"},
               {"m = mul x 0.02; c = ge x 0; y = where c x m", "leaky_relu(x, negative_slope=0.02)"},
               {"m = mul x -0.5; c = ge x 0; y = where c x m", "where(c, x, m)"},
               {"m = mul x 0.02; y = maximum m x", "leaky_relu(x, negative_slope=0.02)"},
               {"m = mul x 1.5; y = maximum m x", "maximum(m, x)"},
               {"c = gt x 0; e = expm1 x; m = mul e 1.3; y = where c x m", "elu(x, alpha=1.3)"},
               {"c = gt x 0; e = exp x; m = sub e 1; y = where c x m", "elu(x, alpha=1.0)"},
               {"c = gt x 0; e = expm1 x; m = mul e 1.6732632423543772; w = where c x m; y = mul w 1.0507009873554805",
                "selu(x)"},
               {"c = gt x 20; e = exp x; l = log1p e; y = where c x l", "softplus(x, threshold=20.0)"},
               {"s = mul x 1.5; c = gt s 10; e = exp s; l = log1p e; d = div l 1.5; y = where c x d",
                "softplus(x, beta=1.5, threshold=10.0)"},
               {"s = mul x 1.5; c = gt s 10; e = exp s; l = log1p e; d = div l 1.6; y = where c x d", "where(c, x, d)"},
               {"c = gt x 20; e = exp x; l = log1p e; w = where c x l; t = tanh w; y = mul x t", "mish(x)"},
               {"z = minimum x 0; a = abs x; n = neg a; e = exp n; l = log1p e; y = sub z l", "log_sigmoid(x)"}});
  CHECK(why_no("fusec.leaky_relu_of_maximum", "x float32 4,8", "m = mul x 1.5; y = maximum m x") ==
        "less(slope, 1) does not hold");
}

TEST_CASE("gelu in both formulas, in every order of its factors") {
  for (const char* inputs : {"x float32 4,8", "x float16 4,8", "x bfloat16 4,8"}) {
    const std::string e = "s = mul x 0.7071067811865476; e = erf s; g = add e 1; ";
    for (const char* rest : {"h = mul x 0.5; y = mul h g", "h = mul g 0.5; y = mul x h", "h = mul x g; y = mul h 0.5",
                             "h = mul x g; y = div h 2"})
      CHECK(y_after(inputs, e + rest) == "gelu(x, approximate=\"none\")");
    CHECK(y_after(inputs, "s = div x 1.4142135623730951; e = erf s; g = add 1.0 e; h = mul x 0.5; y = mul h g") ==
          "gelu(x, approximate=\"none\")");
    for (const char* cube : {"q = pow x 3.0", "p = mul x x; q = mul p x", "p = square x; q = mul x p"})
      CHECK(y_after(inputs, std::string(cube) +
                                "; c = mul q 0.044715; a = add x c; s = mul a 0.7978845608028654; t = tanh s; g = add "
                                "t 1.0; h = mul x 0.5; y = mul h g") == "gelu(x, approximate=\"tanh\")");
    CHECK(y_after(inputs,
                  "p = mul x x; c = mul p 0.044715; a = add c 1; b = mul x 0.79788456; s = mul b a; t = tanh s; g = "
                  "add t 1.0; h = mul x g; y = mul h 0.5") == "gelu(x, approximate=\"tanh\")");
  }
  const char* wrong = "s = mul x 0.7; e = erf s; g = add e 1; h = mul x 0.5; y = mul h g";
  CHECK(y_after("x float32 4,8", wrong) == "mul(h, g)");
  CHECK(why_no("fusec.gelu", "x float32 4,8", wrong) == "found the number 0.7, expected the number 0.7071067811865476");
  // Constants that match no published variant.
  CHECK(y_after("x float32 4,8",
                "q = pow x 3.0; c = mul q 0.0447; a = add x c; s = mul a 0.7978845608028654; t = tanh s; g = add t "
                "1.0; h = mul x 0.5; y = mul h g") == "mul(h, g)");
}

TEST_CASE("an activation whose inner value is needed elsewhere stays written out") {
  CHECK(ops_after("x float32 4,8", "s = sigmoid x; y = mul x s", "y s") == "sigmoid mul");
  CHECK(why_no("fusec.silu", "x float32 4,8", "s = sigmoid x; y = mul x s", "y s") ==
        "\"s\" is an output of the model as well");
  CHECK(why_no("fusec.silu", "x float32 4,8; z float32 4,8", "s = sigmoid x; y = mul x s; w = mul z s", "y w") ==
        "\"s\" is read by \"w\" as well");
  CHECK(ops_after("x float32 4,8; z float32 4,8", "s = sigmoid z; y = mul x s") == "sigmoid mul");
}
