// Limits on time, memory and input of the library's calls: an error for the caller, and the process goes on.
#include <doctest/doctest.h>

#include <fstream>
#include <thread>

#include "fusec/fusec.h"

namespace fusec {
namespace {

// Permutations and reshapes in turn: what the compiler makes of them takes long.
Model long_chain(int rounds) {
  ModelBuilder builder("chain");
  ModelBuilder::Value v = builder.input("x", "float32", {14, 15});
  for (int i = 0; i < rounds; ++i) {
    v = builder.op("reshape", {v}, {{"shape", std::vector<std::int64_t>{6, 35}}});
    v = builder.op("permute", {v}, {{"dims", std::vector<std::int64_t>{1, 0}}});
    v = builder.op("reshape", {v}, {{"shape", std::vector<std::int64_t>{14, 15}}});
    v = builder.op("exp", {v});
  }
  builder.output(v);
  return builder.build();
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kInput);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a call past its time is an error that names the stage, and the next call is not affected") {
  const Model model = long_chain(20);
  for (const char* strategy : {"none", "tvm", "full"}) {
    const std::string error = error_of([&] { compile(model, {.strategy = strategy, .resources = {.seconds = 1e-4}}); });
    CHECK(error.find("time limit is exceeded (stage ") != std::string::npos);
  }
  CHECK(error_of([&] { partition(model, {.resources = {.seconds = 1e-4}}); }).find("time limit") != std::string::npos);
  CHECK(error_of([&] { run_pass(model, "simplify-algebra", {.resources = {.seconds = 1e-7}}); }) != "");
  CHECK(!compile(long_chain(2)).source.empty());
}

TEST_CASE("a call past its memory is an error; memory that the process had before does not count") {
  const std::vector<char> before(std::size_t{128} << 20, 1);
  CHECK(before.back() == 1);
  const Model model = long_chain(300);
  CHECK(error_of([&] {
          compile(model, {.strategy = "none", .resources = {.memory_bytes = std::int64_t{1} << 16}});
        }).find("memory limit is exceeded") != std::string::npos);
  CHECK(!compile(long_chain(2), {.resources = {.memory_bytes = std::int64_t{256} << 20}}).source.empty());
}

TEST_CASE("reading has limits") {
  const std::string json = long_chain(1000).to_json();
  CHECK(error_of([&] { Model::parse(json, ".", {}, {.seconds = 1e-6}); }).find("time limit") != std::string::npos);
  CHECK(error_of([&] { Model::read("/dev/zero", {}, {.file_bytes = 1 << 20}); }).find("--max-file-size") !=
        std::string::npos);
  CHECK(Model::parse(json).node_names().size() == 4000);
}

TEST_CASE("limits are those of one call, also beside others in other threads") {
  const Model model = long_chain(20);
  std::string limited, free = "not run";
  std::thread one([&] { limited = error_of([&] { compile(model, {.resources = {.seconds = 1e-4}}); }); });
  std::thread other([&] { free = error_of([&] { compile(model, {.strategy = "tvm"}); }); });
  one.join();
  other.join();
  CHECK(limited.find("time limit") != std::string::npos);
  CHECK(free == "");
}

TEST_CASE("limits below zero are wrong arguments") {
  CHECK_THROWS_AS(compile(long_chain(1), {.resources = {.seconds = -1}}), Error);
}

}  // namespace fusec
