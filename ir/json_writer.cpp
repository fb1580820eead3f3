#include "ir/json_writer.h"

#include <fmt/format.h>

#include "ir/spelling.h"

namespace fusec {

void JsonWriter::value(double v) {
  std::string digits = fmt::format("{}", v);
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  item(digits);
}

void JsonWriter::value(std::string_view v) {
  item(json_string(v));
}

void JsonWriter::begin_member(std::string_view key) {
  begin_item();
  text_ += json_string(key);
  text_ += indent_ ? ": " : ":";
  has_key_ = true;
}

void JsonWriter::begin_item() {
  if (has_key_) {
    has_key_ = false;
    return;
  }
  if (depth_ == 0) return;
  if (!first_) text_ += ',';
  first_ = false;
  new_line();
}

void JsonWriter::item(std::string_view json) {
  begin_item();
  text_ += json;
}

void JsonWriter::open(char bracket) {
  begin_item();
  text_ += bracket;
  ++depth_;
  first_ = true;
}

void JsonWriter::close(char bracket) {
  --depth_;
  if (!first_) new_line();
  text_ += bracket;
  first_ = false;
}

void JsonWriter::new_line() {
  if (indent_) text_ += '\n' + std::string(static_cast<std::size_t>(indent_ * depth_), ' ');
}

}  // namespace fusec
