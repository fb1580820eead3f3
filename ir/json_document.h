// A JSON text as a compact, read-only tree: 24 bytes per value, every string stored once, children right after their
// parent.
//
//   {"op": "add", "inputs": ["x", 1]}    values: 0 object(2) .. 1 "add" .. 2 array(2) .. 3 "x" .. 4 1
//
// The parser is strict: UTF-8, RFC 8259, no repeated key in an object, nesting of at most 256. Every element has a JSON
// pointer; computing it walks from the root, so only error messages do.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/string_table.h"

namespace fusec {

enum class JsonKind : std::uint8_t {
  kNull,
  kBool,
  kInteger,   // written without fraction and exponent: 2
  kUnsigned,  // integer above 2^63-1
  kHuge,      // integer beyond 64 bits: only the nearest double is known
  kFloat,     // 2.0, 1e-5
  kString,
  kArray,
  kObject,
};

class JsonDocument;

// One value of a document. It is as cheap to pass as a pointer and valid as long as the document.
class Json {
 public:
  Json(const JsonDocument& document, std::uint32_t index) : document_(&document), index_(index) {}

  JsonKind kind() const;
  bool is(JsonKind k) const { return kind() == k; }
  bool is_number() const { return kind() >= JsonKind::kInteger && kind() <= JsonKind::kFloat; }

  bool boolean() const;             // of kBool
  std::int64_t integer() const;     // of kInteger
  std::uint64_t unsigned_() const;  // of kUnsigned
  double number() const;            // of any number
  StringId string() const;          // of kString
  std::string_view text() const;    // of kString
  std::uint32_t size() const;       // of kArray, kObject
  StringId key() const;             // of an object's member, else kNoString
  std::string_view key_text() const;

  std::uint32_t index() const { return index_; }
  std::string pointer() const;      // RFC 6901; control characters escaped, so that it stays on one line
  std::string description() const;  // for messages: `"flaot32"`, `2.5`, `an array of 3 elements`

  // The elements of an array, the members of an object, in the order of the file.
  class Iterator {
   public:
    Iterator(const JsonDocument& document, std::uint32_t index) : document_(&document), index_(index) {}
    Json operator*() const { return {*document_, index_}; }
    Iterator& operator++();
    bool operator==(const Iterator& other) const { return index_ == other.index_; }

   private:
    const JsonDocument* document_;
    std::uint32_t index_;
  };
  Iterator begin() const { return {*document_, index_ + 1}; }
  Iterator end() const;

 private:
  const JsonDocument* document_;
  std::uint32_t index_;
};

class JsonDocument {
 public:
  // `file` is what messages call the text. Throws Error(kInput).
  static JsonDocument parse(std::string_view text, const std::string& file);

  Json root() const { return {*this, 0}; }
  const StringTable& strings() const { return strings_; }
  std::size_t value_count() const { return values_.size(); }

 private:
  friend class Json;
  friend class JsonBuilder;

  struct Value {
    std::uint64_t payload = 0;  // bits of the number, StringId, or number of children
    std::uint32_t end = 0;      // index after the last value inside
    StringId key = kNoString;
    JsonKind kind = JsonKind::kNull;
  };
  std::string pointer_to(std::uint32_t index) const;

  std::vector<Value> values_;
  StringTable strings_;
};

// A number as JSON that reads back to the same double, with a fraction or an exponent: 2.0, 1e-05.
std::string json_number(double value);

// The value's text, minified, with the members of objects sorted by key.
std::string minified(Json value);

}  // namespace fusec
