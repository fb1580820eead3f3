#include "input_file.h"

#include <fstream>
#include <sstream>

#include "ir/error.h"

namespace fusec {

std::string read_text_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  // To insert no character at all is a failure of the stream that takes them: an empty file is asked for its end first.
  const bool is_empty = in && in.peek() == std::ifstream::traits_type::eof() && !in.bad();
  if (is_empty) return "";
  if (!in || !(text << in.rdbuf())) throw Error(ErrorKind::kInput, {.file = path, .what = "the file cannot be read"});
  return text.str();
}

}  // namespace fusec
