// Plan files: a model is compiled with the input as its plan.
#include "fusec/fusec.h"
#include "fuzz/seed_files.h"
#include "fuzz/target.h"

namespace fusec::fuzzing {
namespace {

const Model& model() {
  static const Model read = Model::parse(file_text("tests/golden/split_concat.json"));
  return read;
}

}  // namespace

// The strategy is an option: the one that the plan names.
bool execute(std::string_view input) {
  const auto names = [&](const char* strategy) { return input.find(strategy) != std::string_view::npos; };
  const std::string strategy = names("\"tvm\"") ? "tvm" : names("\"none\"") ? "none" : "full";
  compile(model(), {.strategy = strategy, .plan = std::string(input)});
  return true;
}

std::vector<std::string> seeds() {
  std::vector<std::string> plans;
  for (const char* strategy : {"none", "tvm", "full"})
    for (const std::uint32_t most : {2, 256})
      plans.push_back(compile(model(), {.strategy = strategy, .max_fused_ops = most}).plan);
  plans.push_back(compile(model(), {.disabled_patterns = {"all"}, .disabled_passes = {"merge-siblings"}}).plan);
  return plans;
}

}  // namespace fusec::fuzzing
