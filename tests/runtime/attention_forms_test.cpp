// Attention in its many wirings: one kernel each, which computes what the reference computes.
#include "support/attention_cases.h"

using namespace fusec;
using namespace fusec::test;

TEST_SUITE("attention forms") {
  TEST_CASE("the op, with every mask") {
    const std::string op = "y = scaled_dot_product_attention q k v";
    const std::string in = "q bfloat16 1,2,37,16; k bfloat16 1,2,70,16; v bfloat16 1,2,70,24";
    const std::string in32 = "q float32 1,2,37,9; k float32 1,2,41,9; v float32 1,2,41,5";
    check_cases({
        {"plain", in, op},
        {"causal", in, op + " {\"is_causal\": true}"},
        {"scaled", in, op + " {\"scale\": 0.3}"},
        {"added", in + "; m bfloat16 37,70", op + " m"},
        {"boolean", in + "; m bool 2,37,70", op + " m"},
        {"plain, float32", in32, op, "y", kLanes},
        {"causal, float32", in32, op + " {\"is_causal\": true, \"scale\": 1}", "y", kLanes},
        {"boolean, float32", in32 + "; m bool 1,1,1,41", op + " m", "y", kLanes},
        {"grouped", "q float16 2,6,20,16; k float16 2,2,33,16; v float16 2,2,33,16",
         op + " {\"enable_gqa\": true, \"is_causal\": true}"},
        {"one query, grouped", "q float16 2,6,1,16; k float16 2,2,33,16; v float16 2,2,33,16",
         op + " {\"enable_gqa\": true}"},
        {"float64", "q float64 2,1,20,8; k float64 2,1,17,8; v float64 2,1,17,8", op, "y", kLanes},
        {"symbolic", "q float16 1,2,n,8; k float16 1,2,n,8; v float16 1,2,n,8", op + " {\"is_causal\": true}", "y",
         "attention_mma", "n"},
    });
  }

  TEST_CASE("rows without a key are 0 where the op has a mask, NaN where the formula divides by nothing") {
    const std::string op = "y = scaled_dot_product_attention q k v m";
    const std::string in = "q bfloat16 1,2,70,16; k bfloat16 1,2,20,16; v bfloat16 1,2,20,16; ";
    const std::string in32 = "q float32 1,2,20,8; k float32 1,2,20,8; v float32 1,2,20,8; ";
    check_cases(
        {
            {"boolean", in + "m bool 70,20", op},
            {"added", in + "m bfloat16 70,20", op},
            {"boolean, float32", in32 + "m bool 20,20", op, "y", kLanes},
            {"added, float32, written out", operands("float32", 2, 20, 20, 8, 8) + "; m float32 20,20",
             written_out("s = add p m"), "y", kLanes},
            {"added, float16, written out", operands("float16", 2, 20, 20, 8, 8) + "; m float16 20,20",
             written_out("s = add p m")},
            {"large and finite", operands("float16", 2, 20, 20, 8, 8) + "; m bool 20,20",
             written_out("s = where m p -10000.0")},
            {"the least that is finite", operands("bfloat16", 2, 20, 20, 8, 8) + "; m bool 20,20",
             written_out("s = where m p -3.3e38")},
            {"the least that is finite, float32", operands("float32", 2, 20, 20, 8, 8) + "; m bool 20,20",
             written_out("s = where m p -3.4e38"), "y", kLanes},
        },
        true);
  }

  TEST_CASE("written out, with whatever stands on the scores" * doctest::test_suite("full")) {
    const std::string in = operands("bfloat16", 2, 30, 70, 24, 40), in32 = operands("float32", 2, 30, 41, 24, 40);
    check_cases({
        {"plain", in, written_out("s = mul p 0.2")},
        {"divided, added", in + "; m bfloat16 1,1,1,70", written_out("a = div p 4.9; s = add a m")},
        {"where", in32 + "; m bool 30,41", written_out("s = where m p -1000000000.0"), "y", kLanes},
        {"cap", in, written_out("a = div p 5.0; b = tanh a; s = mul b 5.0")},
        {"bias of position", in32 + "; m float32 2,30,41", written_out("a = mul p 0.3; s = add a m"), "y", kLanes},
        {"causal by indices", in32,
         "i = arange {\"end\": 30, \"dtype\": \"int64\"}; j = arange {\"end\": 41, \"dtype\": \"int64\"}; r = reshape "
         "i "
         "{\"shape\": [30, 1]}; c = le j r; n = full {\"shape\": [], \"value\": \"-inf\", \"dtype\": \"float32\"}; " +
             written_out("s = where c p n"),
         "y", kLanes},
        {"window", in,
         "i = arange {\"end\": 30, \"dtype\": \"int64\"}; j = arange {\"end\": 70, \"dtype\": \"int64\"}; r = reshape "
         "i "
         "{\"shape\": [30, 1]}; c = le j r; d = sub r j; e = lt d 7; f = logical_and c e; n = full {\"shape\": [], "
         "\"value\": \"-inf\", \"dtype\": \"bfloat16\"}; " +
             written_out("a = mul p 0.5; s = where f a n")},
        {"softmax of primitives", in,
         written_out(
             "s = mul p 0.2; f = cast s {\"dtype\": \"float32\"}; g = amax f {\"dim\": [-1], \"keepdim\": true}; "
             "h = sub f g; e = exp h; u = sum e {\"dim\": [-1], \"keepdim\": true}; d = div e u",
             "cast d {\"dtype\": \"bfloat16\"}")},
        {"weights dropped", in + "; m bool 2,2,30,70",
         written_out("s = mul p 0.2; x = softmax s {\"dim\": -1}; z = where m x 0.0", "mul z 1.25")},
        {"float64", operands("float64", 1, 20, 17, 8, 12), written_out("s = mul p 0.2"), "y", kLanes},
        {"float16 operands, float32 result", operands("float16", 1, 20, 17, 8, 12) + "; o float32 1",
         "a = cast q {\"dtype\": \"float32\"}; b = cast k {\"dtype\": \"float32\"}; c = cast v {\"dtype\": "
         "\"float32\"}; t = transpose b {\"dim0\": 2, \"dim1\": 3}; p = matmul a t; s = mul p 0.3; w = softmax s "
         "{\"dim\": -1}; y = matmul w c",
         "y", kLanes},
    });
  }

  TEST_CASE("what stands before and after") {
    const std::string op = "scaled_dot_product_attention";
    check_cases({
        {"heads out of rows and back", "x float16 2,20,48; c float16 2,33,48; d float16 2,33,48",
         "a = reshape x {\"shape\": [2, 20, 3, 16]}; q = transpose a {\"dim0\": 1, \"dim1\": 2}; b = reshape c "
         "{\"shape\": [2, 33, 3, 16]}; k = transpose b {\"dim0\": 1, \"dim1\": 2}; e = reshape d {\"shape\": [2, 33, "
         "3, "
         "16]}; v = transpose e {\"dim0\": 1, \"dim1\": 2}; f = scaled_dot_product_attention q k v; g = transpose f "
         "{\"dim0\": 1, \"dim1\": 2}; y = reshape g {\"shape\": [2, 20, 48]}"},
        {"rope on queries and keys", operands("bfloat16", 2, 30, 30, 16, 16) + "; c bfloat16 30,16; s bfloat16 30,16",
         "a = rope q c s; b = rope k c s; y = " + op + " a b v {\"is_causal\": true}"},
        {"rope on one query",
         "q bfloat16 1,6,1,64; k bfloat16 1,2,70,64; v bfloat16 1,2,70,64; c bfloat16 1,64; s bfloat16 "
         "1,64",
         "a = rope q c s {\"interleaved\": true}; y = " + op + " a k v {\"enable_gqa\": true}"},
        {"rope on one query, written out", operands("float16", 2, 1, 70, 64, 40) + "; c float16 1,64; s float16 1,64",
         "r = rope q c s; t = transpose k {\"dim0\": 2, \"dim1\": 3}; p = matmul r t; u = mul p 0.2; w = softmax u "
         "{\"dim\": -1}; y = matmul w v"},
        {"one query, keys and values of float8",
         "q float16 1,6,1,64; i float8_e4m3fn 1,2,70,64; j float8_e4m3fn 1,2,70,64",
         "k = cast i {\"dtype\": \"float16\"}; v = cast j {\"dtype\": \"float16\"}; y = " + op +
             " q k v {\"enable_gqa\": true}"},
        {"rope, float32", operands("float32", 2, 30, 30, 16, 16) + "; c float32 30,16; s float32 30,16",
         "a = rope q c s {\"interleaved\": true}; b = rope k c s {\"interleaved\": true}; y = " + op +
             " a b v {\"is_causal\": true}",
         "y", kLanes},
        {"expanded heads", "q bfloat16 1,6,20,8; k bfloat16 1,2,20,8; v bfloat16 1,2,20,8",
         "a = unsqueeze k {\"dim\": 2}; b = expand a {\"shape\": [1, 2, 3, 20, 8]}; c = reshape b {\"shape\": [1, 6, "
         "20, "
         "8]}; d = unsqueeze v {\"dim\": 2}; e = expand d {\"shape\": [1, 2, 3, 20, 8]}; f = reshape e {\"shape\": [1, "
         "6, "
         "20, 8]}; y = " +
             op + " q c f"},
        {"folded batch", "q float32 2,3,20,8; k float32 2,3,11,8; v float32 2,3,11,8",
         "a = reshape q {\"shape\": [6, 20, 8]}; b = permute k {\"dims\": [0, 1, 3, 2]}; c = reshape b {\"shape\": [6, "
         "8, "
         "11]}; p = bmm a c; d = reshape p {\"shape\": [2, 3, 20, 11]}; e = mul d 0.35; w = softmax e {\"dim\": -1}; f "
         "= "
         "reshape w {\"shape\": [6, 20, 11]}; g = reshape v {\"shape\": [6, 11, 8]}; h = bmm f g; i = reshape h "
         "{\"shape\": [2, 3, 20, 8]}; j = permute i {\"dims\": [0, 2, 1, 3]}; y = reshape j {\"shape\": [2, 20, 24]}",
         "y", kLanes},
        {"a gate and a cast on the result", operands("float16", 2, 20, 20, 8, 8) + "; g float16 2,2,20,8",
         "a = " + op + " q k v; b = sigmoid g; c = mul a b; y = cast c {\"dtype\": \"bfloat16\"}"},
        {"keys and values before heads", "q float16 2,9,20,8; k float16 2,33,9,8; v float16 2,33,9,8",
         "a = permute k {\"dims\": [0, 2, 3, 1]}; b = permute v {\"dims\": [0, 2, 1, 3]}; p = matmul q a; s = mul p "
         "0.3; "
         "w = softmax s {\"dim\": -1}; y = matmul w b"},
    });
  }

  TEST_CASE("heads of many sizes" * doctest::test_suite("full")) {
    for (const int head : {2, 7, 8, 20, 33, 64, 100, 128, 256}) {
      const std::string in = operands(head % 3 ? "bfloat16" : "float16", 1, 18, 35, head, head);
      check_case({"16 bits", in, written_out("s = mul p 0.2")}, "sm_80");
      const std::string in32 = operands("float32", 1, 18, 35, head, std::min(256, head + 4));
      check_case({"float32", in32, written_out("s = mul p 0.2"), "y", kLanes}, "sm_90a");
    }
    check_case({"float64, large", operands("float64", 1, 9, 10, 256, 256), written_out("s = mul p 0.05"), "y", kLanes},
               "sm_80");
  }

  TEST_CASE("large tiles" * doctest::test_suite("full")) {
    const std::string causal = "y = scaled_dot_product_attention q k v {\"is_causal\": true}";
    check_large({{"causal", operands("bfloat16", 1, 150, 100, 128, 128), causal}});
    check_large({{"odd heads", operands("float16", 1, 140, 90, 72, 24), written_out("s = mul p 0.2")}});
  }

  TEST_CASE("large tiles whose queries and keys are computed, eight places at a time" * doctest::test_suite("full")) {
    const std::string in = operands("bfloat16", 1, 140, 140, 64, 64) + "; c bfloat16 140,64; s bfloat16 140,64";
    const std::string attend = "y = scaled_dot_product_attention a b v {\"is_causal\": true}";
    const AttentionCase rope{"rope", in, "a = rope q c s; b = rope k c s; " + attend};
    check_large({rope});
    AttentionCase by_warpgroups = rope;
    by_warpgroups.schedule = "attention_wgmma";
    Target target = target_for("sm_90a");
    target.multiprocessors = 2;
    check_case(by_warpgroups, target);
    check_case({"rope on keys", in, "b = rope k c s; y = scaled_dot_product_attention q b v", "y", "attention_wgmma"},
               target);
  }

  TEST_CASE("queries, keys and values whose lines are looked up" * doctest::test_suite("full")) {
    const std::string op = "scaled_dot_product_attention", select = "index_select c i {\"dim\": 2}";
    const std::vector<AttentionCase> cases = {
        {"index_select of keys and values", "q float16 1,2,9,64; c float16 1,2,50,64; i int64 21",
         "k = " + select + "; y = " + op + " q k k"},
        {"index_select, more than one tile", "q bfloat16 1,2,70,64; c bfloat16 1,2,50,64; i int64 150",
         "k = " + select + "; y = " + op + " q k k"},
        {"index_select, float32", "q float32 1,2,9,24; c float32 1,2,50,24; i int64 41",
         "k = " + select + "; y = " + op + " q k k", "y", kLanes},
        {"index_select of heads", "q float16 1,3,9,64; c float16 1,5,20,64; i int64 3",
         "k = index_select c i {\"dim\": 1}; y = " + op + " q k k"},
        {"index_select, then rope",
         "q float16 1,2,21,64; c float16 1,2,50,64; i int64 21; d float16 21,64; s float16 21,64",
         "g = " + select + "; k = rope g d s; y = " + op + " q k g"},
        {"embedding", "x float16 100,64; i int64 2,20", "e = embedding x i; y = " + op + " e e e"},
        {"gather along lines", "x bfloat16 1,16,64; i int64 1,4,64",
         "g = gather x i {\"dim\": 1}; y = " + op + " g g g"},
        {"gather along lines, float32, causal", "x float32 1,5,24; i int64 1,4,24",
         "g = gather x i {\"dim\": 1}; y = " + op + " g g g {\"is_causal\": true}", "y", kLanes},
        {"gather along places", "x bfloat16 1,16,64; i int64 1,16,64",
         "g = gather x i {\"dim\": 2}; y = " + op + " g g g"},
        {"gather of keys alone", "q float16 1,9,64; x float16 1,16,64; i int64 1,20,64; v float16 1,20,64",
         "g = gather x i {\"dim\": 1}; y = " + op + " q g v"},
    };
    for (const AttentionCase& c : cases)
      for (const char* arch : {"sm_80", "sm_90a"}) check_case(c, arch);
  }

  TEST_CASE("large tiles whose lines are looked up" * doctest::test_suite("full")) {
    const std::string q = "q float16 2,140,64; ", op = "y = scaled_dot_product_attention ";
    check_large({
        {"keys and values by row", q + "x float16 2,50,64; i int64 90",
         "k = index_select x i {\"dim\": 1}; " + op + "q k k"},
        {"an embedding", "x float16 100,64; i int64 2,140", "e = embedding x i; " + op + "e e e"},
        {"keys by element", q + "x float16 2,16,64; i int64 2,70,64; v float16 2,70,64",
         "k = gather x i {\"dim\": 1}; " + op + "q k v"},
        {"queries by row, then scaled",
         "x float16 2,50,64; i int64 140; k float16 2,70,64; v float16 2,70,64; g float16 64",
         "s = index_select x i {\"dim\": 1}; r = mul s g; " + op + "r k v"},
    });
  }

  TEST_CASE("masks are read two keys at a time" * doctest::test_suite("full")) {
    const std::string masked = "y = scaled_dot_product_attention q k v m";
    for (const char* mask : {"; m float16 130,70", "; m bool 130,70", "; m float16 1,70"})
      check_large({{"mask", operands("float16", 1, 130, 70, 64, 64) + mask, masked}});
    check_large({{"whole tiles", operands("bfloat16", 1, 128, 128, 64, 64) + "; m bfloat16 128,128", masked}});
  }

  TEST_CASE("what is no attention is cut in several kernels that compute the same") {
    const std::string in = operands("float16", 2, 20, 20, 8, 8);
    check_case({"another use of the scores", in, written_out("s = mul p 0.2") + "; z = exp p", "y z", kCut}, "sm_80");
    check_case({"two values of one softmax", in + "; x float16 2,2,20,8",
                written_out("s = mul p 0.2") + "; z = matmul w x", "y z", kCut},
               "sm_80");
    check_case({"softmax over queries", in, written_out("s = mul p 0.2", "softmax s {\"dim\": -2}"), "y", kCut},
               "sm_80");
    check_case(
        {"a head that is too large", operands("float16", 1, 9, 10, 264, 8), written_out("s = mul p 0.2"), "y", kCut},
        "sm_80");
  }
}

TEST_SUITE("full") {
  TEST_CASE("large tiles in every wiring") {
    const std::string op = "y = scaled_dot_product_attention q k v";
    const std::string in = operands("bfloat16", 1, 150, 100, 128, 128), causal = " {\"is_causal\": true}";
    check_large({
        {"plain", in, op},
        {"causal", in, op + causal},
        {"causal, fewer queries than keys", operands("float16", 1, 130, 270, 64, 64), op + causal},
        {"whole tiles", operands("bfloat16", 1, 128, 128, 64, 64), op + causal},
        {"a mask", in + "; m bool 150,100", op + " m"},
        {"two keys", operands("bfloat16", 1, 130, 2, 128, 128), op},
        {"grouped", "q bfloat16 1,6,140,32; k bfloat16 1,2,70,32; v bfloat16 1,2,70,32",
         op + " {\"enable_gqa\": true, \"is_causal\": true}"},
        {"symbolic", "q float16 1,2,n,64; k float16 1,2,n,64; v float16 1,2,n,64", op + causal, "y", "attention_mma",
         "n"},
        {"heads in rows", "a bfloat16 1,140,2,64; b bfloat16 1,90,2,64; c bfloat16 1,90,2,64",
         "q = transpose a {\"dim0\": 1, \"dim1\": 2}; k = transpose b {\"dim0\": 1, \"dim1\": 2}; v = transpose c "
         "{\"dim0\": 1, \"dim1\": 2}; o = scaled_dot_product_attention q k v; y = transpose o {\"dim0\": 1, "
         "\"dim1\": 2}"},
        {"cast", operands("float16", 1, 130, 70, 64, 64),
         "o = scaled_dot_product_attention q k v; y = cast o {\"dtype\": \"bfloat16\"}"},
        {"weights as well", operands("bfloat16", 1, 130, 70, 64, 64), written_out("s = mul p 0.2"), "y w"},
        {"rope", operands("bfloat16", 1, 140, 140, 64, 64) + "; c bfloat16 140,64; s bfloat16 140,64",
         "a = rope q c s; b = rope k c s; y = scaled_dot_product_attention a b v" + causal},
    });
    for (const auto& [depth, columns] : {std::pair{24, 40}, {72, 72}, {80, 80}, {96, 112}, {33, 64}, {256, 256}})
      check_large({{"heads", operands("float16", 1, 140, 90, depth, columns), written_out("s = mul p 0.2")}});
    check_large({{"rows without a key", operands("bfloat16", 1, 130, 70, 64, 64) + "; m bool 130,70", op + " m"}},
                true);
  }

  // The last split has fewer tiles than the others, and its last tile has fewer keys.
  TEST_CASE("keys that blocks share") {
    const std::string op = "y = scaled_dot_product_attention q k v";
    const std::string gqa = " {\"enable_gqa\": true}", causal = " {\"enable_gqa\": true, \"is_causal\": true}";
    const std::string in = "q bfloat16 1,4,1,128; k bfloat16 1,1,1088,128; v bfloat16 1,1,1088,128";
    const std::string some = "q float16 1,4,3,80; k float16 1,2,2100,80; v float16 1,2,2100,80";
    const char* const shared = "counters attention_mma";
    for (const char* arch : {"sm_80", "sm_90a"})
      for (const AttentionCase& c : std::vector<AttentionCase>{
               {"one query", in, op + gqa, "y", shared},
               {"a mask", in + "; m bool 1,1,1,1088", op + " m" + gqa, "y", shared},
               {"some queries, heads that are no 32 columns", some, op + gqa, "y", shared},
               {"few keys are seen", some, op + causal, "y", shared},
               {"values of large heads", "q bfloat16 1,2,1,64; k bfloat16 1,1,1500,64; v bfloat16 1,1,1500,256",
                op + gqa, "y", shared},
               {"rope on the query", in + "; c bfloat16 1,128; s bfloat16 1,128",
                "a = rope q c s; y = scaled_dot_product_attention a k v" + gqa, "y", shared},
               {"codes as keys and values",
                "q bfloat16 1,4,1,64; i int8 1,1,1088,64; j int8 1,1,1088,64; c bfloat16 1,1,1088,1",
                "k = dequantize i c {\"dtype\": \"bfloat16\", \"axis\": 3, \"block\": 64}; v = dequantize j c "
                "{\"dtype\": "
                "\"bfloat16\", \"axis\": 3, \"block\": 64}; " +
                    op + gqa,
                "y", shared},
               {"float32", "q float32 1,1,1,64; k float32 1,1,1100,64; v float32 1,1,1100,64", op, "y",
                "counters attention"},
               {"symbolic", "q bfloat16 1,4,1,64; k bfloat16 1,1,n,64; v bfloat16 1,1,n,64", op + gqa, "y", shared,
                R"({"n": {"min": 1, "hint": 4000}})"},
           })
        check_case(c, arch);
  }

  TEST_CASE("a greatest score that grows late, by little and by much") {
    const std::string in = operands("bfloat16", 1, 70, 300, 64, 64) + "; b float32 300";
    for (const char* slope : {"0.02", "0.3", "-0.3", "3.0"})
      check_large({{"slope", in,
                    "c = cast p {\"dtype\": \"float32\"}; r = arange {\"end\": 300, \"dtype\": \"float32\"}; a = mul "
                    "r " +
                        std::string(slope) +
                        "; t = transpose k {\"dim0\": 2, \"dim1\": 3}; p = matmul q t; s = add c a; "
                        "u = softmax s {\"dim\": -1}; w = cast u {\"dtype\": \"bfloat16\"}; y = matmul w v"}});
  }
}
