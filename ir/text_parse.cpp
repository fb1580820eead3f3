// The parser of the readable text form. It translates each statement to the equivalent JSON element of a model file and
// passes the result to the model file reader.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "ir/budget.h"
#include "ir/error.h"
#include "ir/json_document.h"
#include "ir/read.h"
#include "ir/several_errors.h"
#include "ir/spelling.h"
#include "ir/text.h"
#include "ir/text_names.h"

namespace fusec {
namespace {

constexpr std::array<std::string_view, 13> kKeywords = {
    "model", "symbol", "input", "constant", "return", "alias", "as", "true", "false", "null", "inf", "nan", "pattern"};

// A line of a file. With `checks`, pieces of JSON are parsed immediately, so that an error has its line.
struct Place {
  std::string_view file;
  std::size_t line = 1;
  bool checks = false;
};

class LineParser {
 public:
  LineParser(std::string_view line, const Place& place) : line_(line), place_(place) {}

  std::size_t line_number() const { return place_.line; }

  bool at_end() {
    skip_blanks();
    return at_ >= line_.size() || line_[at_] == '#';
  }

  bool take(char c) {
    skip_blanks();
    if (at_ >= line_.size() || line_[at_] != c) return false;
    ++at_;
    return true;
  }

  bool next_is(char c) {
    skip_blanks();
    return at_ < line_.size() && line_[at_] == c;
  }

  bool at_number() {
    skip_blanks();
    return at_ < line_.size() && (line_[at_] == '-' || is_digit(line_[at_]));
  }

  void demand(char c) {
    if (!take(c)) unexpected(fmt::format("'{}'", c));
  }

  // A word of the grammar, if it comes next.
  bool take_word(std::string_view word) {
    skip_blanks();
    if (peek_bare() != word) return false;
    at_ += word.size();
    return true;
  }

  // A name as a JSON string.
  std::string name() {
    skip_blanks();
    if (at_ < line_.size() && line_[at_] == '"') return std::string(fragment());
    const std::string_view bare = peek_bare();
    if (bare.empty() || is_text_keyword(bare)) unexpected("a name");
    at_ += bare.size();
    return json_string(bare);
  }

  // A complete piece of JSON; the reader checks whether it is valid.
  std::string_view fragment() {
    skip_blanks();
    const std::size_t from = at_;
    int depth = 0;
    while (at_ < line_.size()) {
      const char c = line_[at_];
      if (c == '"') {
        skip_string();
        if (depth == 0) break;
        continue;
      }
      if (c == '[' || c == '{') ++depth;
      if (depth == 0 && !is_bare_character(c) && c != '-' && c != '+') break;
      ++at_;
      if ((c == ']' || c == '}') && --depth == 0) break;
    }
    if (at_ == from || depth != 0) unexpected("a value");
    const std::string_view value = line_.substr(from, at_ - from);
    if (place_.checks && !is_json(value)) {
      at_ = from;
      unexpected("a value as JSON has it");
    }
    return value;
  }

  // "bfloat16[tokens, 4096]" as `"dtype": ..., "shape": ...`; "" for a tuple type, which model files do not declare.
  std::string type() {
    skip_blanks();
    if (at_ < line_.size() && line_[at_] == '(') {
      dimension();  // skips the parentheses
      return "";
    }
    const std::string_view dtype = peek_bare();
    at_ += dtype.size();
    demand('[');
    std::string shape;
    while (!take(']')) {
      if (!shape.empty()) demand(',');
      shape += (shape.empty() ? "" : ", ") + dimension();
    }
    return fmt::format("\"dtype\": {}, \"shape\": [{}]", json_string(dtype), shape);
  }

  // Text up to a comma or closing bracket outside parentheses, as a JSON number or string.
  std::string dimension() {
    skip_blanks();
    const std::size_t from = at_;
    int depth = 0;
    for (; at_ < line_.size(); ++at_) {
      const char c = line_[at_];
      if (depth == 0 && (c == ',' || c == ']' || c == '}' || c == '=')) break;
      if (c == '(') ++depth;
      if (c == ')') --depth;
    }
    const std::string_view text = line_.substr(from, at_ - from);
    if (text.empty()) unexpected("a dimension");
    const bool digits = std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
    return digits ? std::string(text) : json_string(text);
  }

  [[noreturn]] void unexpected(const std::string& expected) {
    throw Error(ErrorKind::kInput,
                {.file = std::string(place_.file),
                 .line = place_.line,
                 .column = at_ + 1,
                 .what = fmt::format("line {}, column {}", place_.line, at_ + 1),
                 .found = at_ < line_.size() ? in_quotes(line_.substr(at_, 20)) : "the end of the line",
                 .expected = expected});
  }

 private:
  static bool is_json(std::string_view value) {
    try {
      JsonDocument::parse(value, "");
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  void skip_blanks() {
    while (at_ < line_.size() && (line_[at_] == ' ' || line_[at_] == '\t' || line_[at_] == '\r')) ++at_;
  }

  std::string_view peek_bare() {
    std::size_t end = at_;
    while (end < line_.size() && is_bare_character(line_[end])) ++end;
    return line_.substr(at_, end - at_);
  }

  void skip_string() {
    for (++at_; at_ < line_.size() && line_[at_] != '"'; ++at_)
      if (line_[at_] == '\\') ++at_;
    if (at_ >= line_.size()) unexpected("a closing quote");
    ++at_;
  }

  std::string_view line_;
  Place place_;
  std::size_t at_ = 0;
};

// The elements of the model file, collected statement by statement.
class TextModel {
 public:
  void statement(LineParser line) {
    if (line.at_end()) return;
    if (line.take_word("model"))
      name_ = line.name();
    else if (line.take_word("symbol"))
      symbol(line);
    else if (line.take_word("input"))
      input(line);
    else if (line.take_word("constant"))
      constant(line);
    else if (line.take_word("return"))
      outputs(line);
    else if (line.take_word("alias"))
      alias(line);
    else
      node(line);
    if (!line.at_end()) line.unexpected("the end of the line");
  }

  std::string json() const {
    return fmt::format(
        "{{\"fusec\": 1, \"name\": {}, \"symbols\": {{{}}}, \"inputs\": [{}], \"constants\": [{}],\n\"nodes\": [{}],\n"
        "\"outputs\": [{}], \"aliases\": {{{}}}}}",
        name_, symbols_, inputs_, constants_, nodes_, outputs_, aliases_);
  }

  // The line of the element that a JSON pointer into the model file names; 0 for none.
  std::size_t line_of(std::string_view pointer) const {
    for (const auto& [prefix, lines] :
         {std::pair<std::string_view, const std::vector<std::size_t>&>{"/inputs/", input_lines_},
          {"/constants/", constant_lines_},
          {"/nodes/", node_lines_},
          {"/outputs/", output_lines_}}) {
      if (!pointer.starts_with(prefix)) continue;
      std::size_t index = 0;
      const auto read = std::from_chars(pointer.data() + prefix.size(), pointer.data() + pointer.size(), index);
      if (read.ec == std::errc() && index < lines.size()) return lines[index];
    }
    return 0;
  }

 private:
  static void append(std::string& list, const std::string& element) { list += (list.empty() ? "" : ", ") + element; }

  static std::string declaration(LineParser& line) {
    const std::string name = line.name();
    line.demand(':');
    return "\"name\": " + name + ", " + line.type();
  }

  void input(LineParser& line) {
    append(inputs_, "{" + declaration(line) + "}");
    input_lines_.push_back(line.line_number());
  }

  void outputs(LineParser& line) {
    do {
      append(outputs_, line.name());
      output_lines_.push_back(line.line_number());
    } while (line.take(','));
  }

  void symbol(LineParser& line) {
    const std::string name = line.name();
    std::string bounds;
    while (!line.at_end()) append(bounds, key_value(line));
    append(symbols_, name + ": {" + bounds + "}");
  }

  static std::string key_value(LineParser& line) {
    const std::string key = line.name();
    line.demand('=');
    return key + ": " + std::string(line.fragment());
  }

  void constant(LineParser& line) {
    std::string element = declaration(line);
    if (line.take('=')) {
      const std::string_view value = line.fragment();
      if (value.starts_with('['))
        element += ", \"data\": " + std::string(value);
      else
        element += fmt::format(", \"safetensors\": {{\"file\": {}, \"tensor\": {}}}", value, line.fragment());
    }
    append(constants_, "{" + element + "}");
    constant_lines_.push_back(line.line_number());
  }

  void alias(LineParser& line) {
    const std::string output = line.name();
    line.demand('-');
    line.demand('>');
    append(aliases_, output + ": " + line.name());
  }

  // An operand: a number or word of JSON, a dimension in braces, or a name.
  static std::string operand(LineParser& line) {
    if (line.take('{')) {
      const std::string dim = line.dimension();
      line.demand('}');
      return "{\"dim\": " + dim + "}";
    }
    for (const char* word : {"true", "false", "null"})
      if (line.take_word(word)) return word;
    return "";
  }

  void call(LineParser& line, std::string& inputs, std::string& attributes) {
    line.demand('(');
    while (!line.take(')')) {
      if (!inputs.empty() || !attributes.empty()) line.demand(',');
      std::string value = operand(line);
      if (value.empty() && line.at_number()) value = line.fragment();
      if (value.empty()) {
        value = line.name();
        if (line.take('=')) {
          append(attributes, value + ": " + std::string(line.fragment()));
          continue;
        }
      }
      append(inputs, value);
    }
  }

  void node(LineParser& line) {
    std::string outputs, own_name, rest;
    do {
      const std::string name = line.name();
      if (own_name.empty()) own_name = name;
      std::string type;
      if (!line.next_is('=') && !line.next_is(',')) {
        line.demand(':');
        type = line.type();
      }
      append(outputs, type.empty() ? name : "{\"name\": " + name + ", " + type + "}");
    } while (line.take(','));
    line.demand('=');
    const std::string op = line.name();
    std::string inputs, attributes;
    call(line, inputs, attributes);
    if (line.take_word("as")) own_name = line.name();
    if (line.take_word("pattern")) {
      line.demand('=');
      rest += ", \"pattern\": " + line.name();
    }
    if (line.take_word("fuse")) {
      line.demand('=');
      rest += ", \"fuse\": " + std::string(line.fragment());
    }
    append(nodes_,
           fmt::format("\n{{\"name\": {}, \"op\": {}, \"inputs\": [{}], \"outputs\": [{}], \"attrs\": {{{}}}{}}}",
                       own_name, op, inputs, outputs, attributes, rest));
    node_lines_.push_back(line.line_number());
  }

  std::string name_ = "\"model\"", symbols_, inputs_, constants_, nodes_, outputs_, aliases_;
  std::vector<std::size_t> input_lines_, constant_lines_, node_lines_, output_lines_;
};

std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

TextModel gathered(std::string_view text, Place place) {
  TextModel model;
  for (; !text.empty(); ++place.line) {
    count_step();
    model.statement(LineParser(take_line(text), place));
  }
  return model;
}

// The reader's error with the line of the text in place of the JSON pointer.
Error with_line(const Error& error, const TextModel& model) {
  Error::Parts parts = error.parts();
  if (const std::size_t line = model.line_of(parts.pointer); line != 0) {
    parts.line = line;
    parts.what = fmt::format("line {}: {}", line, parts.what);
    parts.pointer.clear();
  }
  return Error(error.kind(), std::move(parts));
}

}  // namespace

bool is_text_keyword(std::string_view word) {
  return std::find(kKeywords.begin(), kKeywords.end(), word) != kKeywords.end();
}

std::string text_name(std::string_view name) {
  const bool bare = !name.empty() && !(name[0] >= '0' && name[0] <= '9') && name[0] != '.' &&
                    std::all_of(name.begin(), name.end(), is_bare_character) && !is_text_keyword(name);
  return bare ? std::string(name) : json_string(name);
}

bool is_graph_text(std::string_view text) {
  while (!text.empty()) {
    LineParser line(take_line(text), {""});
    if (line.at_end()) continue;
    for (const std::string_view word : {"model", "symbol", "input", "constant"})
      if (line.take_word(word)) return !line.at_end() && !line.take(':') && !line.take(',');
    return false;
  }
  return false;
}

Graph parse_graph_text(std::string_view text, const OpTable& table, const std::string& directory,
                       const std::string& file, const Limits& limits) {
  const TextModel model = gathered(text, {file});
  try {
    return read_model_text(model.json(), file, directory, table, limits);
  } catch (const SeveralErrors& errors) {
    std::vector<Error> all;
    for (const Error& error : errors.all()) all.push_back(with_line(error, model));
    throw SeveralErrors(std::move(all));
  } catch (const Error& error) {
    if (error.parts().pointer.empty()) gathered(text, {.file = file, .checks = true});
    throw with_line(error, model);
  }
}

}  // namespace fusec
