// Builds a JsonDocument from the events of a parser, in the order of the text. It refuses what a single token does not
// show: nesting that is too deep, a repeated key.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/json_document.h"

namespace fusec {

class JsonBuilder {
 public:
  JsonBuilder(JsonDocument& document, const std::string& file) : document_(document), file_(file) {}

  void leaf(JsonKind kind, std::uint64_t payload) {
    add(kind, payload);
    document_.values_.back().end = last() + 1;
  }
  void string(std::string_view text) { leaf(JsonKind::kString, document_.strings_.intern(text)); }
  void key(std::string_view text) { key_ = document_.strings_.intern(text); }
  void open(JsonKind kind) {
    add(kind, 0);
    open_.push_back(last());
    if (open_.size() > kDeepest) refuse_depth();
  }
  void close() {
    if (document_.values_[open_.back()].kind == JsonKind::kObject) refuse_repeated_keys(open_.back());
    document_.values_[open_.back()].end = last() + 1;
    open_.pop_back();
  }

  bool is_open() const { return !open_.empty(); }
  bool is_in_object() const { return document_.values_[open_.back()].kind == JsonKind::kObject; }
  std::string pointer_to_last() const { return document_.pointer_to(last()); }

 private:
  static constexpr std::size_t kDeepest = 256;

  std::uint32_t last() const { return static_cast<std::uint32_t>(document_.values_.size() - 1); }
  void add(JsonKind kind, std::uint64_t payload) {
    if (document_.values_.size() >= std::numeric_limits<std::uint32_t>::max() - 1) refuse_size();
    if (!open_.empty()) ++document_.values_[open_.back()].payload;
    // An open container has the greatest number as its end; pointer_to relies on it.
    document_.values_.push_back({payload, std::numeric_limits<std::uint32_t>::max(), key_, kind});
    key_ = kNoString;
  }
  void refuse_repeated_keys(std::uint32_t object);
  [[noreturn]] void refuse_depth() const;
  [[noreturn]] void refuse_size() const;

  JsonDocument& document_;
  const std::string& file_;
  StringId key_ = kNoString;
  std::vector<std::uint32_t> open_;
  std::vector<std::pair<StringId, std::uint32_t>> keys_;
};

}  // namespace fusec
