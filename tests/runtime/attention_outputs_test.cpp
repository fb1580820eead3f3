// Attention with more outputs than its result: weights, scores, and what is made of them.
#include <tuple>

#include "support/attention_cases.h"

using namespace fusec;
using namespace fusec::test;

TEST_SUITE("attention outputs") {
  TEST_CASE("weights and scores that are outputs, too, are written by a second pass") {
    const std::string in = operands("bfloat16", 2, 70, 80, 24, 40), in32 = operands("float32", 2, 30, 41, 8, 12);
    check_cases({
        {"weights", in, written_out("s = mul p 0.2"), "y w"},
        {"weights, float32", in32, written_out("s = mul p 0.2"), "y w", kLanes},
        {"scores", in32, written_out("s = mul p 0.2"), "y s", kLanes},
        {"weights in float32 of 16-bit operands", in,
         "a = cast q {\"dtype\": \"float32\"}; b = cast k {\"dtype\": \"float32\"}; t = transpose b {\"dim0\": 2, "
         "\"dim1\": 3}; p = matmul a t; s = mul p 0.2; d = softmax s {\"dim\": -1}; w = cast d {\"dtype\": "
         "\"bfloat16\"}; y = matmul w v",
         "y d"},
        {"some of the weights", in32,
         written_out("s = mul p 0.2") + "; u = slice w {\"dim\": 3, \"start\": 0, \"end\": 20}; x = slice v {\"dim\": "
                                        "2, \"start\": 0, \"end\": 20}; z = matmul u x",
         "z w", kCut},
        {"heads folded, result permuted", "q float32 2,3,20,8; k float32 2,3,11,8; v float32 2,3,11,8; m bool 20,11",
         "t = permute k {\"dims\": [0, 1, 3, 2]}; p = matmul q t; s = where m p -1000000000.0; w = softmax s {\"dim\": "
         "-1}; f = reshape w {\"shape\": [6, 20, 11]}; g = reshape v {\"shape\": [6, 11, 8]}; h = bmm f g; i = reshape "
         "h "
         "{\"shape\": [2, 3, 20, 8]}; j = permute i {\"dims\": [0, 2, 1, 3]}; y = reshape j {\"shape\": [2, 20, 24]}",
         "y w", kLanes},
        {"symbolic", "q float16 1,2,n,8; k float16 1,2,n,8; v float16 1,2,n,8", written_out("s = mul p 0.3"), "y w",
         "attention_mma", "n"},
    });
    check_cases({{"rows without a key", operands("float32", 2, 20, 20, 8, 8) + "; m float32 20,20",
                  written_out("s = add p m"), "y w", kLanes}},
                true);
  }

  // Scores wait in the place of float32 weights: written by the pass over the keys, read when maximum and sum are
  // known.
  TEST_CASE("float32 weights as outputs, in every wiring" * doctest::test_suite("full")) {
    const std::string in = operands("float32", 2, 37, 45, 12, 20), in16 = operands("bfloat16", 2, 37, 46, 24, 40);
    const std::string rows =
        "i = arange {\"end\": 37, \"dtype\": \"int64\"}; j = arange {\"end\": 45, \"dtype\": "
        "\"int64\"}; r = reshape i {\"shape\": [37, 1]}; c = le j r; n = full {\"shape\": [], "
        "\"value\": \"-inf\", \"dtype\": \"float32\"}; ";
    const std::string widened =
        "a = cast q {\"dtype\": \"float32\"}; b = cast k {\"dtype\": \"float32\"}; t = transpose b {\"dim0\": 2, "
        "\"dim1\": 3}; p = matmul a t; s = mul p 0.2; d = softmax s {\"dim\": -1}; w = cast d {\"dtype\": "
        "\"bfloat16\"}; y = matmul w v";
    const std::string causal =
        std::string(widened).replace(widened.find("d = softmax s"), 13, "e = where c s n; d = softmax e");
    for (const char* arch : {"sm_80", "sm_90a"})
      for (const AttentionCase& c : std::vector<AttentionCase>{
               {"boolean mask", in + "; m bool 37,45", written_out("a = mul p 0.3; s = where m a -1000000000.0"), "y w",
                kLanes},
               {"added mask", in + "; m float32 2,1,37,45", written_out("s = add p m"), "y w", kLanes},
               {"causal by indices", in, rows + written_out("s = where c p n"), "y w", kLanes},
               {"window", in, rows + "d = sub r j; e = lt d 7; f = logical_and c e; " + written_out("s = where f p n"),
                "y w", kLanes},
               {"dropped out", in + "; m bool 2,2,37,45",
                written_out("s = mul p 0.2; x = softmax s {\"dim\": -1}; z = where m x 0.0", "mul z 1.25"), "y w x",
                kLanes},
               {"dropped out, before it alone", in + "; m bool 2,2,37,45",
                written_out("s = mul p 0.2; x = softmax s {\"dim\": -1}; z = where m x 0.0", "mul z 1.25"), "y x",
                kLanes},
               {"scores and weights", in, written_out("s = mul p 0.2"), "y s w", kLanes},
               {"converted as well", in, written_out("s = mul p 0.2") + "; h = cast w {\"dtype\": \"float16\"}",
                "y h w", kLanes},
               {"grouped heads", "q float32 1,6,20,8; a float32 1,2,33,8; b float32 1,2,33,8",
                "c = unsqueeze a {\"dim\": 2}; d = expand c {\"shape\": [1, 2, 3, 33, 8]}; k = reshape d {\"shape\": "
                "[1, "
                "6, 33, 8]}; e = unsqueeze b {\"dim\": 2}; f = expand e {\"shape\": [1, 2, 3, 33, 8]}; v = reshape f "
                "{\"shape\": [1, 6, 33, 8]}; " +
                    written_out("s = mul p 0.3"),
                "y w", kLanes},
               {"float64", operands("float64", 1, 20, 17, 8, 12), written_out("s = mul p 0.2"), "y w", kLanes},
               {"one query", operands("float32", 2, 1, 45, 8, 8), written_out("s = mul p 0.2"), "y w", kLanes},
               {"tensor cores", in16, widened, "y d"},
               {"tensor cores, causal", operands("bfloat16", 2, 37, 45, 24, 40), rows + causal, "y d"},
               {"tensor cores, odd keys", operands("bfloat16", 2, 70, 77, 24, 40), widened, "y d"},
               {"symbolic", "q float32 1,2,n,8; k float32 1,2,n,8; v float32 1,2,n,8", written_out("s = mul p 0.3"),
                "y w", kLanes, "n"},
           })
        check_case(c, arch);
    check_large({{"large tiles", operands("bfloat16", 1, 150, 90, 64, 64), widened, "y d"},
                 {"large tiles in lanes", operands("float32", 1, 150, 90, 64, 64), written_out("s = mul p 0.2"), "y w",
                  kLanes}});
  }

  TEST_CASE("float32 weights as outputs where blocks share the keys") {
    for (const char* arch : {"sm_80", "sm_90a"}) {
      check_case({"float32", operands("float32", 1, 2, 1100, 64, 64), written_out("s = mul p 0.2"), "y w",
                  "attention attention"},
                 arch);
      check_case({"a mask", operands("float32", 1, 3, 1101, 64, 64) + "; m bool 3,1101",
                  written_out("s = where m p -1000000000.0"), "y w", "attention attention"},
                 arch);
    }
  }

  TEST_CASE("what rows are reduced to, beside the result" * doctest::test_suite("full")) {
    const std::string in = operands("float16", 2, 37, 45, 16, 24), in32 = operands("float32", 2, 37, 45, 12, 20);
    const std::string greatest = "m = amax s {\"dim\": [-1], \"keepdim\": true}; d = sub s m; e = exp d; ";
    const std::string total = "u = sum e {\"dim\": [-1], \"keepdim\": true}; ";
    const std::string product = "t = transpose k {\"dim0\": 2, \"dim1\": 3}; p = matmul q t; s = mul p 0.3; ";
    const std::string divided = product + greatest + total + "o = matmul e v; y = div o u";
    const std::string logarithm = "; g = log u; l = add m g", op = written_out("s = mul p 0.2") + "; l = logsumexp s ";
    for (const char* arch : {"sm_80", "sm_90a"})
      for (const AttentionCase& c : std::vector<AttentionCase>{
               {"divided behind the product", in32, divided, "y", kLanes},
               {"maximum and logarithm, divided behind", in, divided + logarithm, "y l"},
               {"the same, float32, other order", in32, divided + logarithm, "l y", kLanes},
               {"maximum and logarithm, divided before", in,
                product + greatest + total + "w = div e u; y = matmul w v" + logarithm, "y l"},
               {"the op, a dimension less", in, op + "{\"dim\": [-1]}", "y l"},
               {"the op, converted", in32,
                op + "{\"dim\": [-1], \"keepdim\": true}; h = cast l {\"dtype\": \"bfloat16\"}", "y h l", kLanes},
               {"the op, a dimension taken out", in32,
                op + "{\"dim\": [-1], \"keepdim\": true}; h = squeeze l {\"dim\": -1}", "y h", kLanes},
               {"greatest and total, nothing divided", in32, product + greatest + total + "y = matmul e v", "y m u",
                kLanes},
               {"nothing divided", in, product + greatest + "y = matmul e v", "y"},
               {"weights as well", in32, op + "{\"dim\": [-1]}", "y l w", kLanes},
               {"symbolic", "q float16 1,2,n,8; k float16 1,2,n,8; v float16 1,2,n,8", op + "{\"dim\": [-1]}", "y l",
                "attention_mma", "n"},
           })
        check_case(c, arch);
    check_large({{"large tiles", operands("bfloat16", 1, 150, 100, 64, 64), op + "{\"dim\": [-1]}", "y l"}});
    const std::string masked = written_out("s = add p m") + "; l = logsumexp s {\"dim\": [-1]}";
    check_cases(
        {{"rows without a key", operands("float32", 2, 20, 20, 8, 8) + "; m float32 20,20", masked, "y l", kLanes},
         {"rows without a key", operands("float16", 2, 20, 20, 8, 8) + "; m float16 20,20", masked, "y l"}},
        true);
    check_case({"blocks share the keys", operands("float32", 1, 2, 1100, 64, 64), op + "{\"dim\": [-1]}", "y l",
                "counters attention"},
               "sm_80");
  }

  TEST_CASE("what is reduced otherwise leaves attention as it is") {
    const std::string in = operands("float16", 2, 20, 30, 8, 8);
    const std::string op = written_out("s = mul p 0.2");
    for (const char* more :
         {"; l = amax s {\"dim\": [-2]}", "; l = logsumexp s {\"dim\": [-2]}", "; l = sum w {\"dim\": [1]}",
          "; g = logsumexp s {\"dim\": [-1]}; l = sum g {\"dim\": [0]}"}) {
      const Graph graph = short_model(in.c_str(), (op + more).c_str(), "y l");
      const FusionPlan plan = plain_plan(graph, true);
      const auto nvrtc = nvrtc_or_skip();
      if (!nvrtc) return;
      const TensorMap tensors = random_tensors(graph, 7), want = run_reference(graph, tensors);
      const TensorMap got = run_on_emulator(*nvrtc, graph, plan, tensors, {}, target_for("sm_80"));
      for (const auto& [name, tensor] : want) check_close(more + (", " + name), got.at(name), tensor, 1);
    }
  }

  TEST_CASE("sinks on either side of the scores") {
    const std::string in = operands("float16", 3, 20, 45, 16, 16) + "; i float16 3";
    const std::string sink =
        "a = reshape i {\"shape\": [1, 3, 1, 1]}; b = expand a {\"shape\": [2, 3, 20, 1]}; t = transpose k "
        "{\"dim0\": 2, \"dim1\": 3}; p = matmul q t; s = mul p 0.3; ";
    const std::string in32 = operands("float32", 3, 20, 45, 16, 16) + "; i float32 3";
    for (const char* arch : {"sm_80", "sm_90a"})
      for (const auto& [what, joined, start] : {std::tuple{"behind", "concat s b", 0}, {"before", "concat b s", 1}}) {
        const std::string nodes = fmt::format(
            "{}c = {} {{\"dim\": -1}}; x = softmax c {{\"dim\": -1}}; w = slice x "
            "{{\"dim\": -1, \"start\": {}, \"end\": {}}}; y = matmul w v",
            sink, joined, start, start + 45);
        check_case({what, in, nodes}, arch);
        check_case({what, in32, nodes, "y w", kLanes}, arch);
      }
  }
}
