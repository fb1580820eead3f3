// Target files of the user's own. A model is compiled with what is taken: the cost model computes with its figures.
#include "fuzz/target.h"

#include "fusec/fusec.h"
#include "fuzz/input_pipe.h"
#include "fuzz/seed_files.h"

namespace fusec::fuzzing {

bool execute(std::string_view input) {
  static const Model model = Model::parse(file_text("tests/golden/guards.json"));
  if (input.size() > InputPipe::kMost) return false;
  const InputPipe pipe(input);
  compile(model, {.target = pipe.path()});
  return true;
}

std::vector<std::string> seeds() {
  return {R"({"fusec_target": 1, "arch": "sm_80"})",
          R"({"fusec_target": 1, "arch": "sm_90a", "chip": "H20", "multiprocessors": 78, "bandwidth": 4.0e12,
              "float16_rate": 148e12, "source": "our own measurements"})",
          R"({"fusec_target": 1, "arch": "sm_80", "name": "own", "l2_bytes": 1000000, "multiprocessors": 1,
              "shared_bytes": 49152, "launch_seconds": 1e-6, "float32_rate": 1e9, "float64_rate": 1})"};
}

}  // namespace fusec::fuzzing
