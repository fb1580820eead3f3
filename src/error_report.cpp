#include "error_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "ir/json_location.h"
#include "ir/text_location.h"
#include "ir/utf8.h"

namespace fusec {
namespace {

struct Location {
  TextLocation place;
  std::size_t length = 1;  // bytes to underline
  std::string line;
  std::string element;  // node "act"
};

// Where a line has these words, apart from longer ones.
std::size_t find_words(std::string_view line, std::string_view words) {
  if (words.empty()) return std::string_view::npos;
  const auto is_inner = [&](std::size_t i) {
    return i < line.size() && (std::isalnum(static_cast<unsigned char>(line[i])) || line[i] == '_' || line[i] == '.');
  };
  const auto joins = [&](std::size_t inside, std::size_t outside) { return is_inner(inside) && is_inner(outside); };
  std::size_t at = line.find(words);
  while (at != std::string_view::npos && (joins(at, at - 1) || joins(at + words.size() - 1, at + words.size())))
    at = line.find(words, at + 1);
  return at;
}

// Text other than JSON tells its line, and not always the column: that of what was found, else of the first word.
Location location_in_line(TextLocation place, std::string line, std::string_view found) {
  if (place.column > 0) return {.place = place, .line = std::move(line)};
  std::size_t at = find_words(line, found);
  if (at == std::string::npos && found.size() > 2 && found.front() == '"') {  // names stand there without quotes
    found = found.substr(1, found.size() - 2);
    at = find_words(line, found);
  }
  const std::size_t length = at == std::string::npos ? 1 : found.size();
  if (at == std::string::npos) at = std::min(line.find_first_not_of(" \t"), line.size());
  return {.place = {place.line, place_of(line, at).column}, .length = length, .line = std::move(line)};
}

std::optional<Location> location_of(const Error::Parts& parts, const FileText& text_of) {
  if (parts.file.empty() || (parts.pointer.empty() && parts.line == 0)) return std::nullopt;
  const std::optional<std::string> text = text_of(parts.file);
  if (!text) return std::nullopt;
  if (parts.line > 0)
    return location_in_line({parts.line, parts.column}, std::string(line_of(*text, parts.line)), parts.found);
  const JsonLocation at = fault_in_json(*text, parts.pointer, parts.found);
  Location location{
      .place = place_of(*text, at.begin), .length = at.end - at.begin, .element = named_element(*text, parts.pointer)};
  location.line = line_of(*text, location.place.line);
  return location;
}

// A line as single columns of text. What is not printable is a blank, a question mark where it is no UTF-8. A line can
// be megabytes long, so that only what is shown is kept.
struct Columns {
  std::size_t count = 0;  // of the whole line
  std::string shown;      // those from `begin` to `end`
};
Columns columns_of(std::string_view line, std::size_t begin = 0, std::size_t end = 0) {
  Columns columns;
  for (std::size_t at = 0; at < line.size(); ++columns.count) {
    const std::size_t length = character_length(line, at);
    const auto byte = static_cast<unsigned char>(line[at]);
    if (begin <= columns.count && columns.count < end)
      columns.shown += length == 0 ? "?" : byte < 0x20 || byte == 0x7f ? " " : line.substr(at, length);
    at += std::max<std::size_t>(1, length);
  }
  return columns;
}

// The part of the line that fits, around the place, and the carets below.
std::string excerpt(const Location& location, const ErrorStyle& style) {
  const std::string number = std::to_string(location.place.line);
  const std::size_t columns = columns_of(location.line).count;
  const std::size_t room = std::max<std::size_t>(style.width, 40) - number.size() - 12;
  const std::size_t at = std::min(location.place.column - 1, columns);
  std::size_t begin = 0;
  if (columns > room && at > room / 2) begin = std::min(at - room / 2, columns - room);
  const bool cut_left = begin > 0, cut_right = columns > begin + room;
  const std::string shown = columns_of(location.line, begin, begin + room).shown;
  const std::size_t rest_of_line = std::max<std::size_t>(1, std::min(columns, begin + room) - std::min(at, columns));
  const std::size_t carets = std::clamp<std::size_t>(location.length, 1, rest_of_line);
  const char* const left = cut_left ? "..." : "";
  return fmt::format("   {} | {}{}{}\n   {} | {}{}{}{}", number, left, shown, cut_right ? "..." : "",
                     std::string(number.size(), ' '), std::string(at - begin + (cut_left ? 3 : 0), ' '),
                     style.colored ? "\033[1;31m" : "", std::string(carets, '^'), style.colored ? "\033[0m" : "");
}

std::string_view kind_name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInput:
      return "input";
    case ErrorKind::kUsage:
      return "usage";
    case ErrorKind::kEnvironment:
      return "environment";
  }
  return "";
}

}  // namespace

std::string error_text(const Error& error, const FileText& text_of, const ErrorStyle& style) {
  std::string text = error.what();
  const auto location = location_of(error.parts(), text_of);
  if (!location) return text;
  text += fmt::format("\n  at {}:{}:{}{}{}\n", error.parts().file, location->place.line, location->place.column,
                      location->element.empty() ? "" : ", ", location->element);
  return text + excerpt(*location, style);
}

std::string errors_json(std::span<const Error> errors, const FileText& text_of) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Error& one : errors) {
    const Error::Parts& parts = one.parts();
    nlohmann::ordered_json entry = {{"kind", kind_name(one.kind())}, {"message", one.what()}, {"file", parts.file}};
    if (const auto location = location_of(parts, text_of)) {
      entry["line"] = location->place.line;
      entry["column"] = location->place.column;
      entry["element"] = location->element;
    }
    entry["pointer"] = parts.pointer;
    entry["what"] = parts.what;
    entry["found"] = parts.found;
    entry["expected"] = parts.expected;
    entry["hint"] = parts.hint;
    list.push_back(std::move(entry));
  }
  const nlohmann::ordered_json report = {{"errors", list}, {"exit_status", errors.front().exit_status()}};
  return report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace fusec
