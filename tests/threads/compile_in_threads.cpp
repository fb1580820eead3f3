// The library in eight threads at once, each with a model of its own: compile_in_threads SECONDS MODEL...
//
// Every result is that of the same call alone. The thread sanitizer (preset tsan) looks for races.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "fusec/fusec.h"

namespace {

constexpr std::size_t kThreads = 8, kVariants = 6;

const fusec::Registry& registry() {
  static const fusec::Registry made = fusec::Registry().with(
      {.name = "my.cap", .operands = {"x"}, .pattern = "elemwise", .expression = "30 * tanh($0)"});
  return made;
}

fusec::Options options_of(std::size_t variant) {
  constexpr const char* kStrategies[] = {"none", "tvm", "full"};
  return {.strategy = kStrategies[variant % 3],
          .arch = variant < 3 ? "sm_80" : "sm_90a",
          .patterns = {{.text = "pattern my.twice \"\"\n  match add(x, x)\n  becomes group\n",
                        .check = {},
                        .attributes = {}}},
          .report = variant == 2};
}

// Whatever the library gives for a model in this variant, errors included.
std::string results(const std::string& json, std::size_t variant) {
  try {
    const fusec::Model model = fusec::Model::parse(json, ".", registry());
    const fusec::Options options = options_of(variant);
    const fusec::Compilation made = fusec::compile(model, options);
    std::string text = model.to_text() + made.source + made.manifest + made.partition + made.plan + made.report;
    for (const fusec::PatternInfo& pattern : fusec::patterns_in_order(options)) text += pattern.name;
    return text + fusec::run_pass(model, "simplify-algebra", options).to_json();
  } catch (const fusec::Error& error) {
    return error.what();
  }
}

std::string text_of(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::printf("usage: %s SECONDS MODEL...\n", argv[0]);
    return 2;
  }
  std::vector<std::string> models;
  for (int i = 2; i < argc; ++i) models.push_back(text_of(argv[i]));
  models.push_back(models[0].substr(0, models[0].size() / 2));  // no JSON
  // What is right is computed afterwards: the threads are the first to use the library, so that races of its
  // initialization show.
  std::atomic<std::size_t> calls = 0;
  std::vector<std::vector<std::vector<std::string>>> made(
      kThreads, std::vector<std::vector<std::string>>(models.size(), std::vector<std::string>(kVariants)));
  std::atomic<bool> differs = false;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::atoi(argv[1]));
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (std::size_t round = 0; std::chrono::steady_clock::now() < end; ++round) {
        const std::size_t m = (t + round) % models.size(), variant = round / models.size() % kVariants;
        std::string text = results(models[m], variant);
        std::string& first = made[t][m][variant];
        if (first.empty())
          first = std::move(text);
        else if (first != text)
          differs = true;
        ++calls;
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t m = 0; m < models.size(); ++m)
    for (std::size_t variant = 0; variant < kVariants; ++variant) {
      const std::string alone = results(models[m], variant);
      for (const auto& of_thread : made)
        if (!of_thread[m][variant].empty() && of_thread[m][variant] != alone) differs = true;
    }
  std::printf("%zu calls in %zu threads, %s\n", calls.load(), kThreads,
              differs ? "some with results of their own" : "all with the results of one alone");
  return differs ? 1 : 0;
}
