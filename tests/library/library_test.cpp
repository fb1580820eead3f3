// The public API as a front end uses it: models, single passes, the whole pipeline, errors, threads.
#include <doctest/doctest.h>

#include <algorithm>
#include <thread>

#include "fusec/fusec.h"

using namespace fusec;

namespace {

Model gated_unit(const std::string& name, std::int64_t width) {
  ModelBuilder builder(name);
  builder.symbol("tokens", {.max = 4096, .hint = 16});
  const auto gate = builder.input("gate", "float16", {"tokens", width});
  const auto up = builder.input("up", "float16", {"tokens", width});
  const auto same = builder.op("reshape", {builder.op("silu", {gate}, {}, "act")},
                               {{"shape", std::vector<std::string>{"tokens", std::to_string(width)}}}, "same");
  builder.op("exp", {up}, {}, "unused");
  builder.output(builder.op("mul", {same, up}, {}, "h"));
  return builder.build();
}

std::string error_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a compilation gives plan, kernels, source, manifest and report as values") {
  const Compilation c = compile(gated_unit("unit", 64));
  CHECK(c.identifier == "unit");
  CHECK(c.source.find("unit_launch") != std::string::npos);
  CHECK(c.manifest.find("\"fusec_manifest\"") != std::string::npos);
  CHECK(c.partition.find("\"dropped\"") != std::string::npos);
  REQUIRE(c.groups.size() == 1);
  CHECK(c.groups[0].pattern == "elemwise");
  REQUIRE(c.kernels.size() == 1);
  CHECK(c.source.find(c.kernels[0].source) != std::string::npos);
  CHECK(c.kernels[0].ptx == nullptr);
  CHECK(c.diagnostics.empty());
}

TEST_CASE("PTX and cubin come with the kernels, or an error says that NVRTC is missing") {
  try {
    const Compilation c = compile(gated_unit("unit", 64), {.ptx = true});
    REQUIRE(c.kernels.size() == 1);
    CHECK(c.kernels[0].ptx->find(".entry " + c.kernels[0].name) != std::string::npos);
    CHECK(c.kernels[0].cubin->substr(1, 3) == "ELF");
  } catch (const Error& error) {
    CHECK(error.exit_status() == 3);
    MESSAGE("skipped: " << error.what());
  }
}

TEST_CASE("single passes run by name") {
  const Model model = gated_unit("unit", 64);
  CHECK(model.node_names().size() == 4);
  const Model smaller = run_pass(model, "simplify-algebra");
  const std::vector<std::string> expected = {"act", "h"};
  CHECK(smaller.node_names() == expected);
  CHECK(model.node_names().size() == 4);
  CHECK(run_pass(model, "keep-apart", {.no_fuse_ops = {"silu"}}).to_text().find("fuse=false") != std::string::npos);
  CHECK(annotate_patterns(smaller) == std::vector<std::string>{"elemwise", "elemwise"});
  CHECK(annotate_patterns(model, "tvm")[1] == "opaque");  // a reshape with symbols
  CHECK(partition(model, {.strategy = "none"}).size() == 4);
  CHECK(partition(model).size() == 1);
}

TEST_CASE("every rewriting pass of the list runs by its name; the others say what has their results") {
  const Model model = gated_unit("unit", 64);
  bool rewrites = false, others = false;
  for (const PassInfo& pass : passes_in_order()) {
    CAPTURE(pass.name);
    CHECK(!pass.summary.empty());
    const std::string error = error_of([&] { run_pass(model, pass.name); });
    CHECK(error.empty() == pass.rewrites);
    (pass.rewrites ? rewrites : others) = true;
  }
  CHECK(rewrites);
  CHECK(others);
}

TEST_CASE("an unknown pass is an error that lists the known ones") {
  const std::string error = error_of([] { run_pass(gated_unit("unit", 64), "simplify-algebre"); });
  CHECK(error.find("\"simplify-algebre\"") != std::string::npos);
  CHECK(error.find("keep-apart, ") != std::string::npos);
  CHECK(error.find("did you mean \"simplify-algebra\"") != std::string::npos);
}

TEST_CASE("options that do not exist are errors, not defaults") {
  const Model model = gated_unit("unit", 64);
  CHECK(error_of([&] { compile(model, {.strategy = "most"}); }).find("none, tvm or full") != std::string::npos);
  CHECK(error_of([&] { annotate_patterns(model, "most"); }).find("none, tvm or full") != std::string::npos);
  CHECK(error_of([&] { compile(model, {.arch = "sm_12"}); }).find("sm_80") != std::string::npos);
  CHECK(error_of([&] { compile(model, {.symbols = {{"token", 3}}}); }).find("\"tokens\"") != std::string::npos);
  CHECK(error_of([&] { compile(model, {.symbols = {{"tokens", 5000}}}); }).find("4096") != std::string::npos);
  CHECK(error_of([&] { compile(model, {.plan = "[]"}); }).find("plan") != std::string::npos);
  CHECK(error_of([&] { compile(model, {.max_fused_ops = 0}); }).find("max_fused_ops: found 0") != std::string::npos);
  CHECK(error_of([&] { partition(model, {.max_fused_ops = 0}); }).find("max_fused_ops") != std::string::npos);
  CHECK(error_of([&] { compile(model, {.jobs = -3}); }).find("jobs: found -3") != std::string::npos);
  CHECK(partition(model, {.max_fused_ops = 1}).size() == 2);
}

TEST_CASE("a plan goes out and comes back") {
  const Model model = gated_unit("unit", 64);
  const Compilation first = compile(model);
  const Compilation again = compile(model, {.plan = first.plan});
  CHECK(again.source == first.source);
  CHECK(again.plan == first.plan);
}

TEST_CASE("the value of a symbol reaches the report's bytes") {
  const Model model = gated_unit("unit", 64);
  // Two operands and a result of 2 bytes an element.
  CHECK(compile(model, {.symbols = {{"tokens", 3}}}).partition.find(std::to_string(2 * 3 * 64 * 2)) !=
        std::string::npos);
}

TEST_CASE("different models compile at once on several threads, with the result of one after the other") {
  constexpr int kThreads = 4;
  std::vector<std::string> alone, together(kThreads);
  const Registry registry =
      Registry().with({.name = "my.cap", .operands = {"x"}, .pattern = "elemwise", .expression = "30 * tanh($0 / 30)"});
  auto source_of = [&](int i) {
    ModelBuilder builder("model" + std::to_string(i), registry);
    const auto x = builder.input("x", "float32", {8 + i, 128});
    const auto w = builder.constant("w", "float32", {64, 128});
    const auto scores = builder.op("linear", {builder.op("my.cap", {x}), w});
    builder.output(builder.op("softmax", {scores}, {{"dim", std::int64_t{-1}}}));
    const Model model = builder.build();
    std::string text;
    for (const char* strategy : {"none", "tvm", "full"}) {
      const Compilation c = compile(model, {.strategy = strategy, .arch = i % 2 ? "sm_90a" : "sm_80"});
      text += c.source + c.manifest + c.partition + c.plan;
    }
    return text;
  };
  for (int i = 0; i < kThreads; ++i) alone.push_back(source_of(i));
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] { together[static_cast<std::size_t>(i)] = source_of(i); });
  for (std::thread& thread : threads) thread.join();
  CHECK(together == alone);
}
