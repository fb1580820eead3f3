// Writes JSON in the order of the calls:
//
//   JsonWriter out(2);  // two spaces per level; the default is everything on one line
//   out.object([&] {
//     out.member("name", "add");
//     out.member("shape", shape);
//     out.member("cost", [&] { out.object([&] { out.member("bytes", bytes); }); });
//   });
//   return std::move(out).text();
//
// It keeps no tree: nlohmann's trees allocate in their destructors, which ends the program when memory has run out.
#pragma once

#include <concepts>
#include <cstdint>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace fusec {

class JsonWriter {
 public:
  explicit JsonWriter(int indent = 0) : indent_(indent) {}

  void null() { item("null"); }
  void value(bool v) { item(v ? "true" : "false"); }
  void value(double v);  // finite
  void value(std::string_view v);
  void value(const char* v) { value(std::string_view(v)); }
  template <std::integral T>
  void value(T v) {
    item(std::to_string(v));
  }
  template <std::ranges::range List>
  requires(!std::convertible_to<const List&, std::string_view>) void value(const List& elements) {
    array_of(elements, [&](const auto& element) { value(element); });
  }
  // JSON text, copied as it is; it must be one line.
  void written(std::string_view json) { item(json); }

  // The callback writes the members or the elements.
  template <std::invocable F>
  void object(const F& members) {
    open('{');
    members();
    close('}');
  }
  template <std::invocable F>
  void array(const F& elements) {
    open('[');
    elements();
    close(']');
  }
  template <typename List, typename F>
  void array_of(const List& list, const F& write) {
    array([&] {
      for (const auto& element : list) write(element);
    });
  }

  // A member of an object; `v` is its value or a function that writes it.
  template <typename V>
  void member(std::string_view key, const V& v) {
    begin_member(key);
    if constexpr (std::is_invocable_v<const V&>)
      v();
    else
      value(v);
  }

  std::string text() && { return std::move(text_); }

 private:
  void begin_member(std::string_view key);
  void begin_item();
  void item(std::string_view json);
  void open(char bracket);
  void close(char bracket);
  void new_line();

  std::string text_;
  int indent_ = 0, depth_ = 0;
  bool first_ = true;     // the next item is the first of its object or array
  bool has_key_ = false;  // the key of the next value is written already
};

}  // namespace fusec
