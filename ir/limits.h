// Limits on what a model may ask of the compiler: a few bytes of a model file can name a million pieces of a split, or
// a tuple of 2^40 fields. Each limit is far beyond any real model. A model beyond one is refused by an error that names
// the limit, the size found and the option that raises it. Names, defaults and meanings stand in limits.cpp alone;
// docs/limits.md lists them.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "ir/error.h"

namespace fusec {

struct Limits {
  std::int64_t symbols, dimension_size, dimension_terms, values, results, operands, tuple_fields, tuple_depth,
      pattern_growth;

  Limits();  // the defaults
  // With these values, by the names of limit_rows(). Throws Error(kUsage) for an unknown name and a negative value.
  explicit Limits(const std::map<std::string, std::int64_t>& given);
};

struct LimitRow {
  std::string_view name;  // as --limit=NAME=VALUE has it
  std::int64_t Limits::*member;
  std::int64_t preset;
  std::string_view counts;  // what must not exceed it
};
std::span<const LimitRow> limit_rows();

// What is wrong where `found` exceeds the limit, without its place.
Error::Parts beyond_limit(const Limits& limits, std::int64_t Limits::*member, std::int64_t found);

}  // namespace fusec
