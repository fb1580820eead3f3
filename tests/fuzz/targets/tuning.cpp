// Tuning databases. What is taken is written and read again, to the same text.
#include <stdexcept>

#include "codegen/tuning/tuning_database.h"
#include "fuzz/target.h"

namespace fusec::fuzzing {

bool execute(std::string_view input) {
  const std::string text = write_tuning(read_tuning(input, "fuzz.json"));
  if (write_tuning(read_tuning(text, "written.json")) != text)
    throw std::logic_error("a tuning database changes when it is written and read:\n" + text);
  return true;
}

std::vector<std::string> seeds() {
  return {R"({"fusec_tuning": 1, "kernels": []})",
          R"({"fusec_tuning": 1, "kernels": [
              {"arch": "sm_90a", "device": "NVIDIA H200", "kernel": "linear_gelu", "key": "5d0c", "choice": "128x128",
               "microseconds": {"128x128": 210.4, "128x256": 223.9}},
              {"arch": "sm_80", "device": "", "kernel": "sum", "key": "0", "choice": "", "microseconds": {}}]})"};
}

}  // namespace fusec::fuzzing
