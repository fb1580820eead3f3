// The parser of the textual form of a graph. What it takes is printed and parsed again, to the same text.
#include "ir/text.h"

#include <stdexcept>

#include "fuzz/seed_files.h"
#include "fuzz/target.h"

namespace fusec::fuzzing {

bool execute(std::string_view input) {
  const std::string text = graph_text(parse_graph_text(input));
  const std::string again = graph_text(parse_graph_text(text));
  if (text != again) throw std::logic_error("a graph changes when it is printed and parsed:\n" + text + "\n" + again);
  return true;
}

std::vector<std::string> seeds() {
  return files_of("tests/golden", ".txt");
}

}  // namespace fusec::fuzzing
