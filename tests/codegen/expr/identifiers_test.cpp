#include "codegen/expr/identifiers.h"

#include <doctest/doctest.h>

#include "codegen/expr/index_text.h"
#include "codegen/prelude/prelude.h"

using namespace fusec;

TEST_CASE("identifiers from any text") {
  CHECK(clean_identifier("gate") == "gate");
  CHECK(clean_identifier("mlp.gate_proj.weight") == "mlp_gate_proj_weight");
  CHECK(clean_identifier("2nd layer!") == "x2nd_layer");
  CHECK(clean_identifier("__x__y__") == "x_y");
  CHECK(clean_identifier("") == "x");
  CHECK(clean_identifier("\xc3\xa9\xe4\xb8\xad") == "x");
  CHECK(clean_identifier("float") == "float_v");
  CHECK(clean_identifier("INT_MAX") == "int_max");
  CHECK(clean_identifier(std::string(1000, 'a')).size() == 48);
  UniqueNames names;
  CHECK(names.take("act") == "act");
  CHECK(names.take("act") == "act_2");
  CHECK(names.take("act_2") == "act_2_2");
  CHECK(names.take("act") == "act_3");
}

TEST_CASE("no model's functions are called as those of a system library") {
  CHECK(model_identifier("llama") == "llama");
  CHECK(model_identifier("pthread") == "pthread_v");  // pthread_create
  CHECK(model_identifier("sem") == "sem_v");          // sem_destroy
  CHECK(model_identifier("pthread.attr") == "pthread_attr_v");
}

TEST_CASE("names that are reserved are given a suffix") {
  UniqueNames names([](std::string_view name) { return name == "act" || name == "act_2"; });
  CHECK(names.take("act") == "act_3");
  CHECK(names.take("act") == "act_4");
  CHECK(names.take("bias") == "bias");
  CHECK(names.take("bias") == "bias_2");
}

TEST_CASE("comments from any text") {
  CHECK(comment_text("plain words") == "plain words");
  CHECK(comment_text("a*/b/*c") == "a* /b/ *c");
  CHECK(comment_text("a\nb\\") == "a.b.");
  CHECK(comment_text("what?"
                     "?/") == "what? ?/");
  CHECK(comment_text(std::string(1000, 'x')).size() < 90);
}

TEST_CASE("index expressions as C") {
  Bounds bounds;
  bounds.axes = {IndexExpr(10), IndexExpr(64)};
  const IndexExpr i = IndexExpr::axis(0), j = IndexExpr::axis(1);
  std::set<std::string> parts;
  IndexText text{bounds, false, [](Variable v) { return std::string(1, "ij"[v.id]); }, &parts};
  CHECK(text(i * 64 + j) == "i * 64 + j");
  CHECK(text(floor_div(j, 8)) == "(j / 8)");
  CHECK(text(j - 3) == "j - 3");
  CHECK(text.tight(j - 3) == "(j - 3)");
  CHECK(parts.empty());
  CHECK(text(floor_mod(i - j, 8)) == "floor_mod_index<int>(i - j, 8)");
  CHECK(parts.contains("floor_index"));
  CHECK(fits_int32(i * 64 + j, bounds));
  CHECK_FALSE(fits_int32(i * 1000000000 + j, bounds));
}

TEST_CASE("the prelude's parts bring what they need, each once") {
  const std::string text = prelude_text({"block_reduce", "warp_reduce"});
  CHECK(text.find("from_lane_xor") != std::string::npos);
  CHECK(text.find("T warp_reduce") == text.rfind("T warp_reduce"));
  CHECK(is_prelude_name("to_bf16"));
  CHECK(is_prelude_name("KOffsetEntry"));  // a type
  CHECK_FALSE(is_prelude_name("tokens"));
  CHECK(is_prelude_name("multiply_warpgroup_e4m3_e5m2"));
  CHECK(prelude_text({"multiply_warpgroup_s8_64"}).find("multiply_warpgroup_s8(") != std::string::npos);
  CHECK(prelude_text({}).empty());
}
