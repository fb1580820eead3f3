// Softmax and the norms written out: each wiring becomes the composite op and means the same; other axes, constants and
// places of eps do not.
#include "transforms/patterns/recognized.h"

using namespace fusec;
using namespace fusec::test;

TEST_CASE("softmax in every form") {
  const char* in = "x float32 4,8";
  const std::string e = "m = amax x {\"dim\": [1], \"keepdim\": true}; s = sub x m; e = exp s; ";
  const std::string t = "t = sum e {\"dim\": [-1], \"keepdim\": true}; ";
  CHECK(y_after(in, e + t + "y = div e t") == "softmax(x, dim=1)");
  CHECK(y_after(in, e + t + "r = reciprocal t; y = mul r e") == "softmax(x, dim=1)");
  CHECK(y_after(in, "e = exp x; " + t + "y = div e t") == "div(e, t)");  // overflows where softmax does not
  CHECK(y_after(in,
                "m = amax x {\"dim\": 1}; u = unsqueeze m {\"dim\": 1}; s = sub x u; e = exp s; t = sum e {\"dim\": "
                "1}; v = reshape t {\"shape\": [4, 1]}; y = div e v") == "softmax(x, dim=1)");
  CHECK(y_after("x float16 4,8",
                "c = cast x {\"dtype\": \"float32\"}; m = amax c {\"dim\": [1], \"keepdim\": true}; "
                "s = sub c m; e = exp s; " +
                    t + "d = div e t; y = cast d {\"dtype\": \"float16\"}",
                "d y") == "cast(d, dtype=\"float16\")");
  CHECK(y_after(in, "l = log_softmax x {\"dim\": 1}; y = exp l") == "softmax(x, dim=1)");
}

TEST_CASE("log_softmax and logsumexp in every form") {
  const char* in = "x float32 4,8";
  const std::string l = "t = sum e {\"dim\": [1], \"keepdim\": true}; l = log t; ";
  CHECK(y_after(in, "m = amax x {\"dim\": [1], \"keepdim\": true}; s = sub x m; e = exp s; " + l + "y = sub s l") ==
        "log_softmax(x, dim=1)");
  CHECK(y_after(in, "m = amax x {\"dim\": [1], \"keepdim\": true}; s = sub x m; e = exp s; " + l +
                        "z = add m l; y = sub x z") == "log_softmax(x, dim=1)");
  CHECK(y_after(in, "e = exp x; " + l + "y = sub x l") == "sub(x, l)");
  // Where an element of a row is infinite, the others are -inf, and log_softmax's NaN.
  CHECK(y_after(in, "l = logsumexp x {\"dim\": 1, \"keepdim\": true}; y = sub x l") == "sub(x, l)");
  CHECK(y_after(in, "p = softmax x {\"dim\": -1}; y = log p") == "log(p)");
  CHECK(y_after(in, "e = exp x; t = sum e {\"dim\": 1}; y = log t") == "log(t)");
}

TEST_CASE("what is near softmax is none") {
  const char* in = "x float32 8,8; z float32 8,8";
  const auto no = [&](const std::string& nodes, const std::string& why, const std::string& outputs = "y") {
    CAPTURE(nodes);
    CHECK(ops_after(in, nodes, outputs).find("softmax") == std::string::npos);
    CHECK(why_no("fusec.softmax", in, nodes, outputs) == why);
  };
  const std::string e = "m = amax x {\"dim\": [1], \"keepdim\": true}; s = sub x m; e = exp s; ";
  const std::string t = "t = sum e {\"dim\": [1], \"keepdim\": true}; ";
  no(e + "t = sum e {\"dim\": [1]}; y = div e t", "the attribute keepdim of \"t\" is another");
  no(e + t + "y = div e t", "\"e\" is an output of the model as well", "y e");
  no(e + t + "y = div e t; w = mul t 2", "\"t\" is read by \"w\" as well", "y w");
  no(e + t + "f = mul e z; y = div f t", "");
  no("s = sub x z; e = exp s; t = sum e {\"dim\": [1], \"keepdim\": true}; y = div s t", "");
  // The greatest values along another dimension, or of something else, are just a shift, and no protection.
  CHECK(y_after(in, e + "t = sum e {\"dim\": [0], \"keepdim\": true}; y = div e t") == "div(e, t)");
  CHECK(y_after(in, "m = amax z {\"dim\": [1], \"keepdim\": true}; s = sub x m; e = exp s; " + t + "y = div e t") ==
        "div(e, t)");
}

TEST_CASE("layer_norm in every form") {
  const std::string in = "x float32 4,3,8; w float32 8; b float32 8";
  const std::string mean = "m = mean x {\"dim\": [2], \"keepdim\": true}; d = sub x m; ";
  const std::string affine = "p = mul n w; y = add p b";
  const std::string want = "layer_norm(x, w, b, eps=1e-05, normalized_shape=[8])";
  const std::string var = "v = var x {\"dim\": [2], \"keepdim\": true, \"correction\": 0}; a = add v 1e-5; ";
  CHECK(y_after(in, mean + var + "r = rsqrt a; n = mul d r; " + affine) == want);
  CHECK(y_after(in, mean + var + "r = sqrt a; n = div d r; " + affine) == want);
  CHECK(y_after(in, mean + var + "s = sqrt a; r = reciprocal s; n = mul d r; " + affine) == want);
  CHECK(y_after(in, mean + var + "r = pow a -0.5; n = mul r d; p = mul w n; y = add b p") == want);
  const std::string square =
      "v = mean q {\"dim\": [-1], \"keepdim\": true}; a = add v 1e-5; r = rsqrt a; n = mul d r; ";
  CHECK(y_after(in, mean + "q = mul d d; " + square + affine) == want);
  CHECK(y_after(in, mean + "q = pow d 2; " + square + affine) == want);
  CHECK(y_after(in, mean + "q = square d; " + square + affine) == want);
  CHECK(y_after(in,
                "t = sum x {\"dim\": [2], \"keepdim\": true}; m = div t 8; d = sub x m; q = mul d d; u = sum q "
                "{\"dim\": 2}; g = mul u 0.125; v = unsqueeze g {\"dim\": -1}; a = add v 1e-5; r = rsqrt a; n = mul "
                "d r; " +
                    affine) == want);
  CHECK(y_after(in, mean +
                        "q = mul x x; h = mean q {\"dim\": [2], \"keepdim\": true}; k = mul m m; v = sub h k; a = add "
                        "v 1e-5; r = rsqrt a; n = mul d r; " +
                        affine) == want);
  CHECK(y_after(in, mean + var + "r = rsqrt a; y = mul d r") == "layer_norm(x, eps=1e-05, normalized_shape=[8])");
  CHECK(y_after(in, mean + var + "r = rsqrt a; n = mul d r; y = mul n w") ==
        "layer_norm(x, w, eps=1e-05, normalized_shape=[8])");
  CHECK(y_after("x float32 4,3,8",
                "m = mean x {\"dim\": [1, 2], \"keepdim\": true}; d = sub x m; v = var x {\"dim\": [1, "
                "2], \"keepdim\": true, \"correction\": 0}; a = add v 1e-3; r = rsqrt a; y = mul d r") ==
        "layer_norm(x, eps=0.001, normalized_shape=[3, 8])");
  CHECK(ops_after(
            "x bfloat16 4,8; w bfloat16 8; b bfloat16 8",
            "c = cast x {\"dtype\": \"float32\"}; m = mean c {\"dim\": [1], \"keepdim\": true}; d = sub c m; v = var c "
            "{\"dim\": [1], \"keepdim\": true, \"correction\": 0}; a = add v 1e-5; r = rsqrt a; n = mul d r; p = mul "
            "n w; f = add p b; y = cast f {\"dtype\": \"bfloat16\"}") == "cast layer_norm cast");
}

TEST_CASE("rms_norm in every form, its weight before a cast or after it") {
  const std::string in = "x float32 4,8; w float32 8";
  const std::string want = "rms_norm(x, w, eps=1e-06, normalized_shape=[8])";
  for (const char* square : {"q = pow x 2; ", "q = square x; ", "q = mul x x; "}) {
    const std::string a = std::string(square) + "v = mean q {\"dim\": [-1], \"keepdim\": true}; a = add v 1e-6; ";
    CHECK(y_after(in, a + "r = rsqrt a; n = mul x r; y = mul w n") == want);
    CHECK(y_after(in, a + "s = sqrt a; r = div 1 s; n = mul x r; y = mul w n") == want);
    CHECK(y_after(in, a + "r = sqrt a; n = div x r; y = mul n w") == want);
  }
  const std::string wide =
      "c = cast x {\"dtype\": \"float32\"}; q = pow c 2; v = mean q {\"dim\": [-1], \"keepdim\": "
      "true}; a = add v 1e-6; r = rsqrt a; n = mul c r; ";
  const std::string half = "x bfloat16 4,8; w bfloat16 8";
  CHECK(ops_after(half, wide + "p = mul n w; y = cast p {\"dtype\": \"bfloat16\"}") == "cast rms_norm cast");
  // Here the weight is multiplied with what was rounded: the cast stays where it stands.
  CHECK(ops_after(half, wide + "p = cast n {\"dtype\": \"bfloat16\"}; y = mul w p") == "cast rms_norm cast mul");
}

TEST_CASE("what is near a norm is none") {
  const std::string in = "x float32 8,8; w float32 8; z float32 8,8";
  const auto no = [&](const std::string& nodes, const std::string& pattern, const std::string& why,
                      const std::string& outputs = "y") {
    CAPTURE(nodes);
    CHECK(ops_after(in, nodes, outputs).find("norm") == std::string::npos);
    CHECK(why_no(pattern, in, nodes, outputs) == why);
  };
  const std::string mean = "m = mean x {\"dim\": [1], \"keepdim\": true}; d = sub x m; ";
  no(mean + "v = var x {\"dim\": [1], \"keepdim\": true}; a = add v 1e-5; r = rsqrt a; y = mul d r", "fusec.layer_norm",
     "the attribute correction of \"v\" is another");
  no(mean + "v = var x {\"dim\": [1], \"keepdim\": true, \"correction\": 0}; s = sqrt v; a = add s 1e-5; y = div d a",
     "fusec.layer_norm", "found \"a\", a add, expected sqrt");
  no(mean + "v = var x {\"dim\": [0], \"keepdim\": true, \"correction\": 0}; a = add v 1e-5; r = rsqrt a; y = mul d r",
     "fusec.layer_norm", "the attribute dim of \"v\" is another");
  no(mean + "v = var x {\"dim\": [1], \"keepdim\": true, \"correction\": 0}; a = add v 1e-5; r = rsqrt a; y = mul d r",
     "fusec.layer_norm", "\"r\" is an output of the model as well", "y r");
  const std::string rows =
      "m = mean x {\"dim\": [0], \"keepdim\": true}; d = sub x m; v = var x {\"dim\": [0], "
      "\"keepdim\": true, \"correction\": 0}; a = add v 1e-5; r = rsqrt a; y = mul d r";
  no(rows, "fusec.layer_norm", "last_dims(d, x) does not hold");
  no("q = pow x 2; v = mean q {\"dim\": [1]}; a = add v 1e-6; r = rsqrt a; y = mul x r", "fusec.rms_norm",
     "the attribute keepdim of \"v\" is another");
  no("q = pow x 2; v = mean q {\"dim\": [1], \"keepdim\": true}; a = add v 1e-6; r = rsqrt a; y = mul z r",
     "fusec.rms_norm", "x is the input \"z\" in one place and the input \"x\" in another");
  no("q = pow x 2; v = sum q {\"dim\": [1], \"keepdim\": true}; u = div v 7; a = add u 1e-6; r = rsqrt a; y = mul x r",
     "fusec.rms_norm", "found \"u\", a div, expected mean");
}

TEST_CASE("norms by channel") {
  const std::string in = "x float32 2,6,4,5; w float32 6; b float32 6";
  const std::string affine =
      "u = reshape w {\"shape\": [6, 1, 1]}; i = reshape b {\"shape\": [1, 6, 1, 1]}; p = mul n u; "
      "y = add p i";
  const std::string stats =
      "m = mean g {\"dim\": [2, 3], \"keepdim\": true}; v = var g {\"dim\": [2, 3], \"keepdim\": "
      "true, \"correction\": 0}; a = add v 1e-5; r = rsqrt a; ";
  CHECK(y_after(in, "g = reshape x {\"shape\": [2, 3, 2, 20]}; " + stats +
                        "d = sub g m; h = mul d r; n = reshape h "
                        "{\"shape\": [2, 6, 4, 5]}; " +
                        affine) == "group_norm(x, w, b, eps=1e-05, num_groups=3)");
  CHECK(y_after(in, "g = identity x; " + stats + "d = sub g m; n = mul d r; " + affine) ==
        "instance_norm(x, w, b, eps=1e-05)");
  CHECK(
      y_after(in, "g = reshape x {\"shape\": [2, 3, 2, 20]}; " + stats +
                      "u = reshape w {\"shape\": [1, 3, 2, 1]}; f = mul r u; k = neg m; o = mul k f; i = reshape b "
                      "{\"shape\": [1, 3, 2, 1]}; t = add o i; s = reshape f {\"shape\": [2, 6, 1, 1]}; q = reshape t "
                      "{\"shape\": [2, 6, 1, 1]}; p = mul x s; y = add p q") ==
      "group_norm(x, w, b, eps=1e-05, num_groups=3)");
  // Groups that cut channels apart are none of a group_norm.
  CHECK(ops_after(in, "g = reshape x {\"shape\": [2, 4, 3, 10]}; " + stats +
                          "d = sub g m; h = mul d r; y = reshape h "
                          "{\"shape\": [2, 6, 4, 5]}") == "reshape layer_norm reshape");
  // A weight that runs along another dimension.
  CHECK(ops_after("x float32 2,6,6,6; w float32 6; b float32 6",
                  "g = identity x; " + stats +
                      "d = sub g m; n = mul d r; u = reshape w {\"shape\": [6, 1]}; i = reshape b "
                      "{\"shape\": [6, 1]}; p = mul n u; y = add p i")
            .find("instance_norm") == std::string::npos);
}

TEST_CASE("batch_norm in every form") {
  const std::string in = "x float32 2,6,4,5; mu float32 6; var float32 6; w float32 6; b float32 6";
  const auto views = [](const char* names) {
    std::string text;
    for (const char* n = names; *n; ++n) text += std::string(1, *n) + "v = reshape " + *n + " {\"shape\": [6, 1, 1]}; ";
    return text;
  };
  const std::string want = "batch_norm(x, w, b, mu, var, eps=1e-05)";
  const std::string centred = "mv = reshape mu {\"shape\": [6, 1, 1]}; d = sub x mv; a = add var 1e-5; ";
  CHECK(y_after(in, centred + "r = rsqrt a; " + views("rwb") + "n = mul d rv; p = mul n wv; y = add p bv") == want);
  CHECK(y_after(in, centred + "s = sqrt a; r = reciprocal s; " + views("rwb") +
                        "n = mul d rv; p = mul n wv; y = add p bv") == want);
  CHECK(y_after(in, centred + "r = sqrt a; " + views("rwb") + "n = div d rv; p = mul n wv; y = add p bv") == want);
  CHECK(y_after(in, centred + "q = rsqrt a; r = mul w q; " + views("rb") + "p = mul d rv; y = add p bv") == want);
  CHECK(y_after(in, "a = add var 1e-5; q = rsqrt a; r = mul w q; k = mul mu r; t = sub b k; " + views("rt") +
                        "p = mul x rv; y = add p tv") == want);
  CHECK(y_after("x float32 4,6; mu float32 6; var float32 6; w float32 6; b float32 6",
                "d = sub x mu; a = add var 1e-5; r = rsqrt a; n = mul d r; p = mul n w; y = add p b") == want);
  // In 16 bits, with statistics in float32.
  CHECK(ops_after("x float16 2,6,4,5; mu float32 6; var float32 6; w float16 6; b float16 6",
                  centred + "r = rsqrt a; " + views("rwb") +
                      "n = mul d rv; p = mul n wv; e = add p bv; y = cast e {\"dtype\": \"float16\"}") ==
        "cast batch_norm cast");
  // Along another dimension: x[N, H, W, C].
  CHECK(ops_after("x float32 2,6,4,6; mu float32 6; var float32 6; w float32 6; b float32 6",
                  "d = sub x mu; a = add var 1e-5; r = rsqrt a; n = mul d r; p = mul n w; y = add p b")
            .find("batch_norm") == std::string::npos);
}
