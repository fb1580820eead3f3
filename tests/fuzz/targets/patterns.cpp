// Pattern files: a small graph, in which the seeds find something, is compiled with the input's patterns.
#include "fusec/fusec.h"
#include "fuzz/seed_files.h"
#include "fuzz/target.h"

namespace fusec::fuzzing {
namespace {

constexpr char kModel[] = R"({"fusec": 1, "name": "m", "inputs": [{"name": "x", "dtype": "float16", "shape": [8, 64]}],
  "constants": [{"name": "w", "dtype": "float16", "shape": [64, 64]}, {"name": "b", "dtype": "float16", "shape": [64]},
                {"name": "two", "dtype": "float16", "shape": [], "data": [2.0]}],
  "nodes": [{"name": "g", "op": "linear", "inputs": ["x", "w"]}, {"name": "u", "op": "linear", "inputs": ["x", "w", "b"]},
            {"name": "a", "op": "silu", "inputs": ["g"]}, {"name": "h", "op": "mul", "inputs": ["a", "u"]},
            {"name": "s", "op": "add", "inputs": ["h", "two"]}, {"name": "q", "op": "mul", "inputs": ["s", 0.5]},
            {"name": "e", "op": "exp", "inputs": ["q"]},
            {"name": "t", "op": "sum", "inputs": ["e"], "attrs": {"dim": [-1], "keepdim": true}},
            {"name": "y", "op": "div", "inputs": ["e", "t"]}, {"name": "n", "op": "neg", "inputs": ["s"]}],
  "outputs": ["y", "n"]})";

// Built-in patterns are seeds; under their own names they would be refused.
std::string renamed(std::string_view input) {
  std::string text(input);
  for (std::size_t at = 0; (at = text.find("fusec.", at)) != std::string::npos;) text.replace(at, 6, "my.");
  return text;
}

}  // namespace

bool execute(std::string_view input) {
  static const Model model = Model::parse(kModel);
  compile(model, {.patterns = {{.text = renamed(input), .check = {}, .attributes = {}}}});
  return true;
}

std::vector<std::string> seeds() {
  std::vector<std::string> all = files_of("transforms/patterns/builtin", ".patterns", 32768);
  all.push_back("pattern my.gate priority 5 \"a gate\"\n  match mul(act: silu(gate), up)\n  where rank(gate, 2)\n");
  all.push_back("pattern my.halves \"twice the half\"\n  match mul(x, 0.5)\n  becomes div(x, 2.0)\n");
  return all;
}

}  // namespace fusec::fuzzing
