// The reader of model files (JSON). What it takes is written out and read again, to the same text.
#include <stdexcept>

#include "fuzz/seed_files.h"
#include "fuzz/target.h"
#include "ir/read.h"
#include "ir/write.h"

namespace fusec::fuzzing {

bool execute(std::string_view input) {
  const std::string text = model_text(read_model_text(input, "fuzz.json", ""));
  const std::string again = model_text(read_model_text(text, "written.json", ""));
  if (text != again) throw std::logic_error("a model changes when it is written and read:\n" + text + "\n" + again);
  return true;
}

std::vector<std::string> seeds() {
  std::vector<std::string> all = files_of("tests/golden", ".json");
  for (const char* folder : {"tests/errors", "tests/corpus/models"})
    for (std::string& seed : files_of(folder, ".json", 3000)) all.push_back(std::move(seed));
  return all;
}

}  // namespace fusec::fuzzing
