#include "input_file.h"

#include <fstream>
#include <sstream>

#include "ir/error.h"

namespace fusec {

std::string read_text_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (!in || !(text << in.rdbuf())) throw Error(ErrorKind::kInput, {.file = path, .what = "the file cannot be read"});
  return text.str();
}

}  // namespace fusec
