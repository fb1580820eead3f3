// The parser of the readable text form: it turns each statement into the element of a model file that it stands for,
// and has the file's reader do the rest.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ir/error.h"
#include "ir/read.h"
#include "ir/spelling.h"
#include "ir/text.h"
#include "ir/text_names.h"

namespace fusec {
namespace {

constexpr std::array<std::string_view, 13> kKeywords = {
    "model", "symbol", "input", "constant", "return", "alias", "as", "true", "false", "null", "inf", "nan", "pattern"};

class LineParser {
 public:
  LineParser(std::string_view line, std::size_t number) : line_(line), number_(number) {}

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

  // A piece of JSON, up to where it is complete; whether it is valid the reader says.
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
    return line_.substr(from, at_ - from);
  }

  // "bfloat16[tokens, 4096]" as `"dtype": ..., "shape": ...`; "" for a tuple's type, which no file declares.
  std::string type() {
    skip_blanks();
    if (at_ < line_.size() && line_[at_] == '(') {
      dimension();  // whatever the parentheses hold
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

  // Text up to a comma or closing bracket outside of parentheses, as a JSON number or string.
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
                {.file = "graph text",
                 .what = fmt::format("line {}, column {}", number_, at_ + 1),
                 .found = at_ < line_.size() ? in_quotes(line_.substr(at_, 20)) : "the end of the line",
                 .expected = expected});
  }

 private:
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
  std::size_t number_;
  std::size_t at_ = 0;
};

// Elements of the model file, gathered statement by statement.
class ModelBuilder {
 public:
  void statement(LineParser line) {
    if (line.at_end()) return;
    if (line.take_word("model"))
      name_ = line.name();
    else if (line.take_word("symbol"))
      symbol(line);
    else if (line.take_word("input"))
      append(inputs_, "{" + declaration(line) + "}");
    else if (line.take_word("constant"))
      constant(line);
    else if (line.take_word("return"))
      do append(outputs_, line.name());
      while (line.take(','));
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

 private:
  static void append(std::string& list, const std::string& element) { list += (list.empty() ? "" : ", ") + element; }

  static std::string declaration(LineParser& line) {
    const std::string name = line.name();
    line.demand(':');
    return "\"name\": " + name + ", " + line.type();
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
      if (value.empty()) {
        LineParser ahead = line;
        const std::string_view fragment = ahead.fragment();
        const char first = fragment[0];
        if (first == '-' || (first >= '0' && first <= '9')) {
          value = fragment;
          line = ahead;
        } else {
          value = line.name();
          if (line.take('=')) {
            append(attributes, value + ": " + std::string(line.fragment()));
            continue;
          }
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
      line.demand(':');
      const std::string type = line.type();
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
  }

  std::string name_ = "\"model\"", symbols_, inputs_, constants_, nodes_, outputs_, aliases_;
};

}  // namespace

bool is_text_keyword(std::string_view word) {
  return std::find(kKeywords.begin(), kKeywords.end(), word) != kKeywords.end();
}

std::string text_name(std::string_view name) {
  const bool bare = !name.empty() && !(name[0] >= '0' && name[0] <= '9') && name[0] != '.' &&
                    std::all_of(name.begin(), name.end(), is_bare_character) && !is_text_keyword(name);
  return bare ? std::string(name) : json_string(name);
}

Graph parse_graph_text(std::string_view text, const OpTable& table, const std::string& directory) {
  ModelBuilder model;
  std::size_t number = 1;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    model.statement(LineParser(text.substr(0, end), number++));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return read_model_text(model.json(), "graph text", directory, table);
}

}  // namespace fusec
