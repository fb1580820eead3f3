// Products, rotary embedding and attention written out.
#include "transforms/patterns/recognized.h"

using namespace fusec;
using namespace fusec::test;

TEST_CASE("linear in every form") {
  const std::string in = "x float32 3,8; w float32 5,8; b float32 5";
  const std::string t = "t = permute w {\"dims\": [1, 0]}; ";
  CHECK(y_after(in, t + "y = matmul x t") == "linear(x, w)");
  CHECK(y_after(in, "t = transpose w {\"dim0\": 0, \"dim1\": 1}; m = matmul x t; y = add m b") == "linear(x, w, b)");
  CHECK(y_after(in, t + "y = addmm b x t") == "linear(x, w, b)");
  CHECK(y_after(in, t + "y = addmm b x t {\"alpha\": 1, \"beta\": 1}") == "linear(x, w, b)");
  CHECK(y_after(in, t + "y = addmm b x t {\"alpha\": 2}").find("addmm") == 0);
  CHECK(y_after("x float32 2,3,8; w float32 5,8; b float32 5",
                t + "r = reshape x {\"shape\": [6, 8]}; m = addmm b r t; y = reshape m {\"shape\": [2, 3, 5]}") ==
        "linear(x, w, b)");
  CHECK(y_after("x float32 2,3,8; w float32 5,8", t + "e = expand t {\"shape\": [2, 8, 5]}; y = bmm x e") ==
        "linear(x, w)");
  CHECK(y_after("x float32 3,8; w float32 8,8", "y = matmul x w") == "matmul(x, w)");
  // A bias along the rows is none.
  CHECK(ops_after("x float32 5,8; w float32 5,8; b float32 5,1", t + "m = matmul x t; y = add m b") == "linear add");
  CHECK(ops_after(in, t + "m = matmul x t; y = add m b", "y m") == "linear add");
}

TEST_CASE("a bmm between views is a matmul with its batch dimensions") {
  CHECK(
      y_after("a float32 2,3,4,5; b float32 2,3,5,6",
              "p = reshape a {\"shape\": [6, 4, 5]}; q = reshape b {\"shape\": [6, 5, 6]}; m = bmm p q; y = reshape m "
              "{\"shape\": [2, 3, 4, 6]}") == "matmul(a, b)");
  CHECK(ops_after("a float32 2,3,4,5; b float32 6,5,6",
                  "p = reshape a {\"shape\": [6, 4, 5]}; m = bmm p b; y = reshape m {\"shape\": [2, 12, 6]}") ==
        "reshape bmm reshape");
}

TEST_CASE("rotary embedding in every form") {
  const std::string in = "x float32 2,3,4,8; c float32 4,8; s float32 4,8";
  const std::string halves =
      "l = slice x {\"dim\": 3, \"start\": 0, \"end\": 4}; u = slice x {\"dim\": 3, \"start\": 4, "
      "\"end\": 9223372036854775807}; ";
  const std::string rest = "n = neg u; h = concat n l {\"dim\": -1}; a = mul x c; b = mul h s; y = add a b";
  CHECK(y_after(in, halves + rest) == "rope(x, c, s)");
  CHECK(y_after(in, halves + "n = mul u -1; h = concat n l {\"dim\": 3}; a = mul c x; b = mul s h; y = add b a") ==
        "rope(x, c, s)");
  CHECK(y_after(in,
                "p = chunk x {\"chunks\": 2, \"dim\": -1}; n = neg p.1; h = concat n p.0 {\"dim\": -1}; a = mul x c; "
                "b = mul h s; y = add a b") == "rope(x, c, s)");
  CHECK(y_after(in,
                "p = split x {\"split_sizes\": [4, 4], \"dim\": -1}; n = neg p.1; h = concat n p.0 {\"dim\": -1}; a = "
                "mul x c; b = mul h s; y = add a b") == "rope(x, c, s)");
  CHECK(y_after(in,
                "e = slice x {\"dim\": 3, \"start\": 0, \"end\": 8, \"step\": 2}; o = slice x {\"dim\": 3, \"start\": "
                "1, \"end\": 8, \"step\": 2}; n = neg o; t = stack n e {\"dim\": -1}; h = reshape t {\"shape\": [2, 3, "
                "4, 8]}; a = mul x c; b = mul h s; y = add a b") == "rope(x, c, s, interleaved=true)");
  // The lower half negative; halves of unequal size; another dimension.
  CHECK(ops_after(in, halves + "n = neg l; h = concat u n {\"dim\": -1}; a = mul x c; b = mul h s; y = add a b")
            .find("rope") == std::string::npos);
  CHECK(ops_after(in,
                  "l = slice x {\"dim\": 3, \"start\": 0, \"end\": 5}; u = slice x {\"dim\": 3, \"start\": 5, "
                  "\"end\": 8}; " +
                      rest)
            .find("rope") == std::string::npos);
  CHECK(ops_after(
            "x float32 2,3,8,8; c float32 8,8; s float32 8,8",
            "l = slice x {\"dim\": 2, \"start\": 0, \"end\": 4}; u = slice x {\"dim\": 2, \"start\": 4, \"end\": 8}; "
            "n = neg u; h = concat n l {\"dim\": 2}; a = mul x c; b = mul h s; y = add a b")
            .find("rope") == std::string::npos);
}

namespace {

const std::string kHeads = "q float32 2,3,5,8; k float32 2,3,7,8; v float32 2,3,7,6";
const std::string kTurned = "t = permute k {\"dims\": [0, 1, 3, 2]}; ";
const std::string kWeights =
    "m = amax s {\"dim\": [-1], \"keepdim\": true}; d = sub s m; e = exp d; z = sum e {\"dim\": [-1], \"keepdim\": "
    "true}; "
    "p = div e z; ";
const std::string kZero =
    "i = full {\"shape\": [], \"value\": \"-inf\", \"dtype\": \"float32\"}; j = eq s i; l = logical_not j; g = any l "
    "{\"dim\": [-1], \"keepdim\": true}; h = logical_not g; f = where h 0.0 p; ";

}  // namespace

TEST_CASE("attention without a mask, the scale anywhere") {
  const auto want = [](const char* scale) {
    return std::string("scaled_dot_product_attention(q, k, v, scale=") + scale + ")";
  };
  CHECK(y_after(kHeads, kTurned + "r = matmul q t; s = mul r 0.25; " + kWeights + "y = matmul p v") == want("0.25"));
  CHECK(y_after(kHeads, kTurned + "r = matmul q t; s = div r 4; " + kWeights + "y = matmul p v") == want("0.25"));
  CHECK(y_after(kHeads, kTurned + "r = mul q 0.25; s = matmul r t; " + kWeights + "y = matmul p v") == want("0.25"));
  CHECK(y_after(kHeads, kTurned + "s = matmul q t; " + kWeights + "y = matmul p v") == want("1.0"));
  CHECK(y_after(kHeads, kTurned + "r = mul q 0.5; u = mul t 0.5; s = matmul r u; " + kWeights + "y = matmul p v") ==
        want("0.25"));
  CHECK(y_after(kHeads, "r = mul q 0.5; n = mul k 0.5; u = transpose n {\"dim0\": 2, \"dim1\": 3}; s = matmul r u; " +
                            kWeights + "y = matmul p v") == want("0.25"));
  CHECK(y_after("q float32 6,5,8; k float32 6,7,8; v float32 6,7,4",
                "t = permute k {\"dims\": [0, 2, 1]}; r = bmm q t; s = mul r 0.25; " + kWeights + "y = bmm p v") ==
        want("0.25"));
  // Keys that come another way round: they are turned for the op.
  CHECK(ops_after("q float32 2,3,5,8; k float32 2,7,3,8; v float32 2,3,7,6",
                  "t = permute k {\"dims\": [0, 2, 3, 1]}; r = matmul q t; s = mul r 0.25; " + kWeights +
                      "y = matmul p v") == "permute scaled_dot_product_attention");
}

TEST_CASE("attention with a mask") {
  const std::string scores = kTurned + "r = matmul q t; o = mul r 0.25; ";
  const std::string safe = kWeights + kZero + "y = matmul f v";
  CHECK(y_after(kHeads + "; a float32 2,1,5,7", scores + "s = add o a; " + safe) ==
        "scaled_dot_product_attention(q, k, v, a, scale=0.25)");
  CHECK(y_after(kHeads + "; a bool 5,7",
                scores + "i0 = full {\"shape\": [], \"value\": \"-inf\", \"dtype\": \"float32\"}; s = where a o i0; " +
                    safe) == "scaled_dot_product_attention(q, k, v, a, scale=0.25)");
  CHECK(y_after(kHeads + "; a bool 5,7",
                scores +
                    "i0 = full {\"shape\": [5, 7], \"value\": \"-inf\", \"dtype\": \"float32\"}; w = where a 0.0 i0; "
                    "s = add o w; " +
                    safe) == "scaled_dot_product_attention(q, k, v, a, scale=0.25)");
  // A plain softmax makes NaN of a row without keys, the composite op makes 0.
  const std::string plain = scores + "s = add o a; " + kWeights + "y = matmul p v";
  CHECK(y_after(kHeads + "; a float32 2,1,5,7", plain) == "matmul(p, v)");
  CHECK(why_no("fusec.attention_with_known_mask", kHeads + "; a float32 2,1,5,7", plain) ==
        "some_kept(m) does not hold");
}

TEST_CASE("attention in 16 bits, with casts around, with grouped heads") {
  CHECK(y_after("q float16 2,3,5,8; k float16 2,3,7,8; v float16 2,3,7,6",
                kTurned + "r = matmul q t; o = mul r 0.25; s = cast o {\"dtype\": \"float32\"}; " + kWeights +
                    "c = cast p {\"dtype\": \"float16\"}; y = matmul c v") ==
        "scaled_dot_product_attention(q, k, v, scale=0.25)");
  const std::string casts =
      "q0 = cast q {\"dtype\": \"float32\"}; k0 = cast k {\"dtype\": \"float32\"}; v0 = cast v "
      "{\"dtype\": \"float32\"}; ";
  CHECK(y_after("q bfloat16 2,3,5,8; k bfloat16 2,3,7,8; v bfloat16 2,3,7,6; a bfloat16 5,7",
                casts + "t = permute k0 {\"dims\": [0, 1, 3, 2]}; r = matmul q0 t; o = mul r 0.25; s = add o a; " +
                    kWeights + kZero + "w = matmul f v0; y = cast w {\"dtype\": \"bfloat16\"}") ==
        "scaled_dot_product_attention(q, k, v, a, scale=0.25)");
  const std::string grouped =
      "k1 = unsqueeze k {\"dim\": 2}; k2 = expand k1 {\"shape\": [2, 2, 3, 7, 8]}; k3 = reshape k2 "
      "{\"shape\": [2, 6, 7, 8]}; v1 = unsqueeze v {\"dim\": 2}; v2 = expand v1 {\"shape\": [2, "
      "2, 3, 7, 8]}; v3 = reshape v2 {\"shape\": [2, 6, 7, 8]}; ";
  const std::string gq = "q float32 2,6,5,8; k float32 2,2,7,8; v float32 2,2,7,8";
  const std::string rest =
      "t = permute k3 {\"dims\": [0, 1, 3, 2]}; r = matmul q t; s = mul r 0.25; " + kWeights + "y = matmul p v3";
  CHECK(y_after(gq, grouped + rest) == "scaled_dot_product_attention(q, k, v, enable_gqa=true, scale=0.25)");
  CHECK(y_after(gq,
                "k3 = repeat_interleave k {\"repeats\": 3, \"dim\": 1}; v3 = repeat_interleave v {\"repeats\": 3, "
                "\"dim\": 1}; " +
                    rest) == "scaled_dot_product_attention(q, k, v, enable_gqa=true, scale=0.25)");
  // Heads repeated as a whole, not each in a row, are no groups.
  CHECK(
      y_after(gq,
              "k1 = unsqueeze k {\"dim\": 1}; k2 = expand k1 {\"shape\": [2, 3, 2, 7, 8]}; k3 = reshape k2 {\"shape\": "
              "[2, 6, 7, 8]}; v1 = unsqueeze v {\"dim\": 1}; v2 = expand v1 {\"shape\": [2, 3, 2, 7, 8]}; v3 = "
              "reshape v2 {\"shape\": [2, 6, 7, 8]}; " +
                  rest)
          .find("enable_gqa") == std::string::npos);
}

TEST_CASE("a causal mask is known by its places or its data") {
  const std::string in = "q float32 2,3,6,8; k float32 2,3,6,8; v float32 2,3,6,4";
  const std::string scores = kTurned + "r = matmul q t; o = mul r 0.25; ";
  const std::string want = "scaled_dot_product_attention(q, k, v, is_causal=true, scale=0.25)";
  const std::string places =
      "n = arange {\"start\": 0, \"end\": 6, \"step\": 1, \"dtype\": \"int64\"}; ni = unsqueeze n "
      "{\"dim\": 1}; nj = unsqueeze n {\"dim\": 0}; ";
  const std::string inf = "w0 = full {\"shape\": [], \"value\": \"-inf\", \"dtype\": \"float32\"}; ";
  const std::string rest = kWeights + "y = matmul p v";
  // Small ones are folded to data before; places are seen as they are where they would be too large to fold.
  for (const char* mask : {"a = le nj ni; ", "b = sub nj ni; a = le b 0; ", "a = ge ni nj; "}) {
    CHECK(y_after(in, scores + places + mask + inf + "s = where a o w0; " + rest) == want);
    CHECK(y_after(in, scores + places + mask + inf + "g0 = where a 0.0 w0; s = add o g0; " + rest) == want);
  }
  const auto large = [&](const std::string& mask) {
    const std::string text = graph_text([&] {
      CanonicalGraph canonical = canonicalized(
          short_model("q float32 1,1,2000,8; k float32 1,1,2000,8; v float32 1,1,2000,4",
                      scores +
                          "n = arange {\"start\": 0, \"end\": 2000, \"step\": 1, \"dtype\": \"int64\"}; ni = unsqueeze "
                          "n {\"dim\": 1}; nj = unsqueeze n {\"dim\": 0}; " +
                          inf + mask + rest,
                      "y"));
      recognize_patterns(canonical, builtin_list());
      return canonical.graph;
    }());
    return text.substr(text.find("y: "));
  };
  CHECK(large("a = le nj ni; s = where a o w0; ").find(want) != std::string::npos);
  CHECK(large("b = sub nj ni; a = le b 0; g0 = where a 0.0 w0; s = add o g0; ").find(want) != std::string::npos);
  CHECK(
      large(
          "f0 = full {\"shape\": [2000, 2000], \"value\": true, \"dtype\": \"bool\"}; a = tril f0; s = where a o w0; ")
          .find(want) != std::string::npos);
  // The key itself left out: its first row keeps none. And keys from the query on.
  CHECK(large("a = lt nj ni; s = where a o w0; ").find("attention") == std::string::npos);
  CHECK(large("a = ge nj ni; s = where a o w0; ").find("causal") == std::string::npos);
  CHECK(y_after(in, scores + places + "a = ge nj ni; " + inf + "s = where a o w0; " + rest).find("causal") ==
        std::string::npos);
}

TEST_CASE("what is near attention is none") {
  const auto no = [&](const std::string& nodes, const std::string& outputs = "y") {
    CAPTURE(nodes);
    CHECK(ops_after(kHeads, nodes, outputs).find("attention") == std::string::npos);
  };
  const std::string scores = kTurned + "r = matmul q t; s = mul r 0.25; ";
  no(scores + kWeights + "y = matmul p v", "y p");  // the weights are an output
  no(scores + kWeights + "y = matmul p v; w = add s 1.0", "y w");
  no(scores + "p = softmax s {\"dim\": 2}; y = matmul p v");  // over the queries
  no(kTurned + "r = matmul q t; s = relu r; " + kWeights + "y = matmul p v; ");
  CHECK(why_no("fusec.attention", kHeads, scores + kWeights + "y = matmul p v", "y p") ==
        "\"p\" is an output of the model as well");
}
