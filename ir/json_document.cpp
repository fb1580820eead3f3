#include "ir/json_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <nlohmann/json.hpp>

#include "ir/error.h"
#include "ir/json_builder.h"
#include "ir/json_scanner.h"
#include "ir/spelling.h"
#include "ir/text_location.h"
#include "ir/utf8.h"

namespace fusec {
namespace {

// The parts of nlohmann's syntax error message without the place: "unexpected '}'; expected string literal".
struct Complaint {
  std::string found, expected;
};

// The text around an offset up to the next blank or punctuation, at most 40 bytes.
std::string_view word_at(std::string_view text, std::size_t offset) {
  constexpr std::string_view kEnds = " \t\r\n,:{}[]";
  const auto inside = [&](std::size_t i) { return kEnds.find(text[i]) == std::string_view::npos; };
  const auto continues = [&](std::size_t i) { return (static_cast<unsigned char>(text[i]) & 0xc0) == 0x80; };
  if (offset >= text.size()) return "";
  std::size_t begin = offset, end = offset + 1;
  while (begin > 0 && offset - begin < 20 && inside(begin - 1)) --begin;
  while (end < text.size() && end - offset < 20 && inside(offset) && inside(end)) ++end;
  while (begin > 0 && continues(begin)) --begin;
  while (end < text.size() && continues(end)) ++end;
  return text.substr(begin, end - begin);
}

Complaint complaint_of(std::string_view message, std::string_view word) {
  if (const auto dash = message.find(" - "); dash != std::string_view::npos) message.remove_prefix(dash + 3);
  Complaint complaint{.expected = "JSON"};
  // The last token may contain any text, so look for the last separator.
  if (const auto split = message.rfind("; expected "); split != std::string_view::npos) {
    complaint.expected = message.substr(split + 11);
    message = message.substr(0, split);
  }
  if (message.starts_with("invalid string: ")) complaint.expected = "a string as JSON has it";
  const auto read = message.find("; last read: '");
  const bool malformed = read != std::string_view::npos;  // the text is no token, so the message shows it
  message = message.substr(0, read);
  if (message.starts_with("unexpected ")) message.remove_prefix(11);
  complaint.found = message;
  if (malformed) complaint.found += " " + in_quotes(word);
  return complaint;
}

}  // namespace

namespace {

// Builds the document from the events of nlohmann's parser, which keeps no tree and does not recurse.
class JsonHandler : public nlohmann::json::json_sax_t {
 public:
  JsonHandler(JsonBuilder& builder, std::string_view text, const std::string& file)
      : builder_(builder), text_(text), file_(file) {}

  bool null() override { return leaf(JsonKind::kNull, 0); }
  bool boolean(bool value) override { return leaf(JsonKind::kBool, value ? 1 : 0); }
  bool number_integer(number_integer_t value) override {
    return leaf(JsonKind::kInteger, std::bit_cast<std::uint64_t>(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    const bool fits = value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    return leaf(fits ? JsonKind::kInteger : JsonKind::kUnsigned, value);
  }
  bool number_float(number_float_t value, const string_t& written) override {
    const bool whole = written.find_first_of(".eE") == std::string::npos;
    return leaf(whole ? JsonKind::kHuge : JsonKind::kFloat, std::bit_cast<std::uint64_t>(value));
  }
  bool string(string_t& value) override {
    builder_.string(value);
    return true;
  }
  bool binary(binary_t&) override { return false; }  // not in JSON text
  bool start_object(std::size_t) override { return open(JsonKind::kObject); }
  bool start_array(std::size_t) override { return open(JsonKind::kArray); }
  bool key(string_t& value) override {
    builder_.key(value);
    return true;
  }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool parse_error(std::size_t position, const std::string& token, const nlohmann::json::exception& error) override {
    if (error.id == 406) {
      leaf(JsonKind::kNull, 0);
      throw Error(ErrorKind::kInput, {.file = file_,
                                      .pointer = builder_.pointer_to_last(),
                                      .what = "number out of range",
                                      .found = clipped(token),
                                      .expected = "a number that a 64-bit float can hold"});
    }
    const std::size_t offset = std::min(position == 0 ? 0 : position - 1, text_.size());
    const Complaint complaint = complaint_of(error.what(), word_at(text_, offset));
    const TextLocation place = place_of(text_, offset);
    throw Error(ErrorKind::kInput, {.file = file_,
                                    .line = place.line,
                                    .column = place.column,
                                    .what = "not JSON at " + in_words(place),
                                    .found = complaint.found,
                                    .expected = complaint.expected});
  }

 private:
  static std::string clipped(const std::string& token) {
    return token.size() <= 40 ? token : fmt::format("{}... ({} characters)", token.substr(0, 40), token.size());
  }
  bool leaf(JsonKind kind, std::uint64_t payload) {
    builder_.leaf(kind, payload);
    return true;
  }
  bool open(JsonKind kind) {
    builder_.open(kind);
    return true;
  }
  bool close() {
    builder_.close();
    return true;
  }

  JsonBuilder& builder_;
  std::string_view text_;
  const std::string& file_;
};

}  // namespace

JsonDocument JsonDocument::parse(std::string_view text, const std::string& file) {
  if (const std::size_t bad = first_bad_utf8(text); bad != text.size()) {
    const TextLocation place = place_of(text, bad);
    throw Error(ErrorKind::kInput,
                {.file = file,
                 .line = place.line,
                 .column = place.column,
                 .what = "not UTF-8 at " + in_words(place),
                 .found = fmt::format("byte 0x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(text[bad]))),
                 .expected = "UTF-8 text"});
  }
  // The library's message for empty text differs between versions.
  if (text.empty())
    throw Error(ErrorKind::kInput, {.file = file,
                                    .line = 1,
                                    .column = 1,
                                    .what = "not JSON at line 1, column 1",
                                    .found = "end of input",
                                    .expected = "'[', '{', or a literal"});
  // The parser would take a NUL for the end of the text.
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    const TextLocation place = place_of(text, nul);
    throw Error(ErrorKind::kInput, {.file = file,
                                    .line = place.line,
                                    .column = place.column,
                                    .what = "not JSON at " + in_words(place),
                                    .found = "a NUL byte",
                                    .expected = "JSON; in a string it is \\u0000"});
  }
  const auto reserved = [&] {
    JsonDocument document;
    // Unused reserved memory costs nothing; growing would copy.
    document.values_.reserve(text.size() / 8 + 16);
    return document;
  };
  JsonDocument document = reserved();
  JsonBuilder builder(document, file);
  if (scan_json(text, builder)) return document;
  document = reserved();
  JsonBuilder slow(document, file);
  JsonHandler handler(slow, text, file);
  nlohmann::json::sax_parse(text.begin(), text.end(), &handler);
  return document;
}

std::string JsonDocument::pointer_to(std::uint32_t index) const {
  std::string pointer;
  std::uint32_t at = 0;
  while (at != index) {
    const bool array = values_[at].kind == JsonKind::kArray;
    std::size_t position = 0;
    ++at;
    while (values_[at].end <= index) at = values_[at].end, ++position;
    pointer += '/';
    if (array)
      pointer += std::to_string(position);
    else
      pointer += pointer_token(strings_[values_[at].key]);
  }
  return pointer;
}

JsonKind Json::kind() const {
  return document_->values_[index_].kind;
}
bool Json::boolean() const {
  return document_->values_[index_].payload != 0;
}
std::int64_t Json::integer() const {
  return std::bit_cast<std::int64_t>(document_->values_[index_].payload);
}
std::uint64_t Json::unsigned_() const {
  return document_->values_[index_].payload;
}
double Json::number() const {
  if (is(JsonKind::kInteger)) return static_cast<double>(integer());
  if (is(JsonKind::kUnsigned)) return static_cast<double>(unsigned_());
  return std::bit_cast<double>(document_->values_[index_].payload);
}
StringId Json::string() const {
  return static_cast<StringId>(document_->values_[index_].payload);
}
std::string_view Json::text() const {
  return document_->strings_[string()];
}
std::uint32_t Json::size() const {
  return static_cast<std::uint32_t>(document_->values_[index_].payload);
}
StringId Json::key() const {
  return document_->values_[index_].key;
}
std::string_view Json::key_text() const {
  return document_->strings_[key()];
}
Json::Iterator Json::end() const {
  return {*document_, document_->values_[index_].end};
}
Json::Iterator& Json::Iterator::operator++() {
  index_ = document_->values_[index_].end;
  return *this;
}
std::string Json::pointer() const {
  return document_->pointer_to(index_);
}

std::string Json::description() const {
  switch (kind()) {
    case JsonKind::kNull:
      return "null";
    case JsonKind::kBool:
      return boolean() ? "true" : "false";
    case JsonKind::kInteger:
      return std::to_string(integer());
    case JsonKind::kUnsigned:
      return std::to_string(unsigned_());
    case JsonKind::kHuge:
      return fmt::format("an integer of about {:.3g}", number());
    case JsonKind::kFloat:
      return json_number(number());
    case JsonKind::kString:
      return in_quotes(text());
    case JsonKind::kArray:
      return size() == 0 ? "an empty array" : "an array";
    case JsonKind::kObject:
      return size() == 0 ? "an empty object" : "an object";
  }
  return {};
}

std::string json_number(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

namespace {

void append_minified(Json value, std::string& out) {
  if (value.is(JsonKind::kArray)) {
    out += '[';
    bool first = true;
    for (const Json item : value) {
      if (!first) out += ',';
      first = false;
      append_minified(item, out);
    }
    out += ']';
  } else if (value.is(JsonKind::kObject)) {
    std::vector<Json> members;
    for (const Json member : value) members.push_back(member);
    std::sort(members.begin(), members.end(), [](const Json& a, const Json& b) { return a.key_text() < b.key_text(); });
    out += '{';
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (i > 0) out += ',';
      out += json_string(members[i].key_text()) + ":";
      append_minified(members[i], out);
    }
    out += '}';
  } else if (value.is(JsonKind::kString)) {
    out += json_string(value.text());
  } else if (value.is(JsonKind::kHuge)) {
    out += fmt::format("{:.0f}", value.number());  // stays an integer
  } else {
    out += value.description();
  }
}

}  // namespace

std::string minified(Json value) {
  std::string out;
  append_minified(value, out);
  return out;
}

}  // namespace fusec
