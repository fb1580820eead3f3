// What a model file can say, ModelBuilder can: numbers of all kinds, names of any text. What it cannot say is an Error.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "fusec/fusec.h"

using namespace fusec;

namespace {

std::string error_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void check_says(const std::string& message, const std::string& part) {
  CHECK_MESSAGE(message.find(part) != std::string::npos, "\"", message, "\" does not say \"", part, "\"");
}

// The JSON of a model that is this constant.
std::string constant_json(const std::string& dtype, const std::vector<double>& data) {
  ModelBuilder builder("m");
  builder.output(builder.constant("c", dtype, {static_cast<std::int64_t>(data.size())}, data));
  return builder.build().to_json();
}

}  // namespace

TEST_CASE("constants hold NaN and infinities where their dtype does") {
  const std::string json = constant_json("float32", {NAN, INFINITY, -INFINITY, -0.0, 1.5});
  check_says(json, "\"data\": [\"nan\", \"inf\", \"-inf\", -0.0, 1.5]");
  CHECK(Model::parse(json).to_json() == json);
  check_says(error_of([] { constant_json("int32", {NAN}); }), "data of int32");
  check_says(error_of([] { constant_json("uint8", {1, INFINITY}); }), "/constants/0/data/1");
  check_says(error_of([] { constant_json("float8_e4m3fn", {INFINITY}); }), "no infinity");
}

TEST_CASE("constants of integer and bool dtypes take what a file's numbers may be") {
  check_says(constant_json("bool", {0, 1, 1}), "\"data\": [false, true, true]");
  check_says(error_of([] { constant_json("bool", {0, 2}); }), "/constants/0/data/1: data of bool");
  check_says(error_of([] { constant_json("bool", {NAN}); }), "data of bool");
  check_says(constant_json("uint64", {std::ldexp(1.0, 63)}), "9223372036854775808");
  check_says(constant_json("int64", {-std::ldexp(1.0, 63)}), "-9223372036854775808");
  check_says(error_of([] { constant_json("int64", {std::ldexp(1.0, 63)}); }), "out of the range of int64");
  check_says(error_of([] { constant_json("uint8", {-1}); }), "out of the range of uint8");
}

TEST_CASE("constants hold integers of 64 bits exactly") {
  const auto json_of = [](const std::string& dtype, const auto& data) {
    ModelBuilder builder("m");
    builder.output(builder.constant("c", dtype, {static_cast<std::int64_t>(data.size())}, data));
    return builder.build().to_json();
  };
  check_says(json_of("int64", std::vector<std::int64_t>{9007199254740993, INT64_MAX, INT64_MIN}),
             "\"data\": [9007199254740993, 9223372036854775807, -9223372036854775808]");
  check_says(json_of("uint64", std::vector<std::uint64_t>{UINT64_MAX}), "\"data\": [18446744073709551615]");
  check_says(json_of("bool", std::vector<std::int64_t>{0, 1}), "\"data\": [false, true]");
  check_says(json_of("float32", std::vector<std::int64_t>{-1, 3}), "\"data\": [-1.0, 3.0]");
  check_says(error_of([&] { json_of("int8", std::vector<std::int64_t>{128}); }), "out of the range of int8");
}

TEST_CASE("a value of another builder is an Error") {
  ModelBuilder builder("m"), other("other");
  const auto x = builder.input("x", "float32", {4});
  const auto theirs = other.op("relu", {other.input("x", "float32", {4})}, {}, "relu_0");
  CHECK(builder.op("relu", {x}).name == theirs.name);
  const auto parts = other.op_several("split", 2, {theirs}, {{"split_sizes", std::int64_t{2}}});
  const std::function<void()> calls[] = {
      [&] { builder.output(theirs); },
      [&] { builder.op("sub", {x, theirs}); },
      [&] { builder.op_several("split", 2, {parts[1]}); },
  };
  for (const auto& call : calls) check_says(error_of(call), "a value of another builder: found \"");
  builder.output({theirs.name});  // a name alone
  ModelBuilder moved = std::move(builder);
  moved.output(x);
  CHECK(moved.build().outputs().size() == 2);
}

TEST_CASE("attributes hold NaN and infinities, weakly typed operands do not") {
  ModelBuilder builder("m");
  const auto x = builder.input("x", "float32", {2});
  const auto top = builder.op(
      "full", {}, {{"shape", std::vector<std::int64_t>{2}}, {"value", INFINITY}, {"dtype", std::string("float32")}});
  const auto clamped = builder.op("clamp", {x}, {{"min", -INFINITY}, {"max", 1.0}}, "clamped");
  builder.output(builder.op("minimum", {clamped, top}));
  const Model model = builder.build();
  check_says(model.to_json(), "\"value\": \"inf\"");
  check_says(model.to_json(), "\"min\": \"-inf\"");
  CHECK(!compile(model).source.empty());
  check_says(error_of([&] { builder.op("add", {x, INFINITY}); }), "found inf, expected a finite number");
  check_says(error_of([&] { builder.op("add", {x, NAN}); }), "a number as operand: found nan");
  check_says(error_of([&] {
               builder.op("softmax", {x}, {{"dim", NAN}});
               builder.build();
             }),
             "attrs/dim");
}

TEST_CASE("text that is not UTF-8 is an error at the call that gives it") {
  const std::string bad = "a\xfe";
  check_says(error_of([&] { ModelBuilder builder(bad); }), "the model's name is not UTF-8: found byte 0xfe");
  ModelBuilder builder("m");
  const auto x = builder.input("x", "float32", {2});
  const std::function<void()> calls[] = {
      [&] { builder.symbol(bad); },
      [&] { builder.input(bad, "float32", {2}); },
      [&] { builder.input("y", bad, {2}); },
      [&] { builder.input("y", "float32", {bad}); },
      [&] { builder.constant(bad, "float32", {2}); },
      [&] { builder.constant(bad, "float32", {1}, {1}); },
      [&] { builder.op(bad, {x}); },
      [&] { builder.op("relu", {ModelBuilder::Value{bad}}); },
      [&] { builder.op("relu", {x}, {}, bad); },
      [&] {
        builder.op("softmax", {x}, {{bad, std::int64_t{0}}});
      },
      [&] {
        builder.op("softmax", {x}, {{"dtype", bad}});
      },
      [&] {
        builder.op("reshape", {x}, {{"shape", std::vector<std::string>{bad}}});
      },
      [&] { builder.op_several("split", 2, {x}, {}, bad); },
      [&] { builder.output({bad}); },
  };
  for (const auto& call : calls) check_says(error_of(call), "is not UTF-8: found byte 0xfe at position 2");
  // The builder is as it was.
  builder.output(builder.op("relu", {x}, {}, "größer \"½\"\n"));
  CHECK(builder.build().node_names() == std::vector<std::string>{"größer \"½\"\n"});
}

TEST_CASE("a made name is free, and later names cannot be it") {
  ModelBuilder builder("m");
  const auto first = builder.input("add_0", "float32", {4});
  builder.input("split_2.1", "float32", {4});
  builder.op("relu", {first}, {}, "add_1");
  const auto sum = builder.op("add", {first, first});
  CHECK(sum.name != "add_0");
  CHECK(sum.name != "add_1");
  const auto parts =
      builder.op_several("split", 2, {sum}, {{"split_sizes", std::int64_t{2}}, {"dim", std::int64_t{0}}});
  for (const auto& part : parts) CHECK(part.name != "split_2.1");
  const std::function<void()> calls[] = {
      [&] { builder.input(sum.name, "float32", {4}); },
      [&] { builder.constant(parts[1].name, "float32", {4}); },
      [&] { builder.op("relu", {first}, {}, sum.name); },
  };
  for (const auto& call : calls) check_says(error_of(call), "this one was made for a node that was given none");
  for (const auto& part : parts) builder.output(part);
  CHECK(builder.build().node_names().size() == 3);
}

TEST_CASE("symbols, attributes and names of values are given once") {
  ModelBuilder builder("m");
  builder.symbol("n", {.max = 8});
  check_says(error_of([&] { builder.symbol("n"); }), "duplicate symbol: found \"n\"");
  const auto x = builder.input("x", "float32", {"n", 2});
  check_says(error_of([&] {
               builder.op("softmax", {x}, {{"dim", std::int64_t{0}}, {"dim", std::int64_t{1}}});
             }),
             "duplicate attribute of softmax: found \"dim\"");
  builder.output(builder.op("relu", {x}));
  check_says(builder.build().to_json(), "\"max\": 8");
  builder.input("x", "float32", {2});
  check_says(error_of([&] { builder.build(); }), "/inputs/1/name: duplicate value name: found \"x\"");
}

TEST_CASE("a builder that was moved from is an Error, and can be given another") {
  ModelBuilder builder("m");
  const auto x = builder.input("x", "float32", {4});
  ModelBuilder taken = std::move(builder);
  // NOLINTBEGIN(bugprone-use-after-move): that is what is tested
  const std::function<void()> calls[] = {
      [&] { builder.symbol("n"); },
      [&] { builder.input("y", "float32", {4}); },
      [&] { builder.op("relu", {x}); },
      [&] { builder.op_several("split", 2, {x}); },
      [&] { builder.constant("c", "float32", {1}, {0}); },
      [&] { builder.output(x); },
      [&] { builder.build(); },
  };
  for (const auto& call : calls) check_says(error_of(call), "a ModelBuilder that was moved from");
  // NOLINTEND(bugprone-use-after-move)
  taken.output(x);
  builder = std::move(taken);
  CHECK(builder.build().name() == "m");
  Model model = builder.build();
  const Model other = std::move(model);
  CHECK(model.name() == other.name());  // NOLINT(bugprone-use-after-move)
  Registry registry;
  const Registry moved = std::move(registry);
  CHECK(registry.op_names() == moved.op_names());  // NOLINT(bugprone-use-after-move)
}

TEST_CASE("a node has no more results than memory can name") {
  ModelBuilder builder("m");
  const auto x = builder.input("x", "float32", {4});
  const std::string message = error_of([&] { builder.op_several("split", 100'000'000'000, {x}); });
  check_says(message, "too many results of split: found 100000000000, expected at most 1048576");
  check_says(error_of([&] { builder.op_several("split", static_cast<std::size_t>(-1), {x}); }), "too many results");
  builder.output(x);
  CHECK(builder.build().node_names().empty());  // nothing of it is left
}

TEST_CASE("limits are given where a model is made") {
  ModelBuilder builder("m");
  const auto x = builder.input("x", "float32", {4});
  for (const auto& part : builder.op_several("split", 4, {x}, {{"split_sizes", std::int64_t{1}}})) builder.output(part);
  check_says(error_of([&] { builder.build({.sizes = {{"results", 3}}}); }), "the limit results is exceeded");
  check_says(error_of([&] { builder.build({.sizes = {{"result", 3}}}); }), "no such limit: found \"result\"");
  CHECK(builder.build({.sizes = {{"results", 4}}}).node_names().size() == 1);
}
