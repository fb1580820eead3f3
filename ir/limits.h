// Limits on the size of a model. Without them a few bytes of a model file could ask for a million pieces of a split or
// a tuple of 2^40 fields. Each limit is far beyond any real model. The error for a model beyond a limit names the
// limit, the size found and the option that raises it. limits.cpp holds names, defaults and meanings; docs/limits.md
// lists them.
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
      pattern_growth, pattern_rounds;

  Limits();  // the defaults
  // The defaults, overridden by `given` (keys as in limit_rows()). Throws Error(kUsage) for an unknown name and a
  // negative value.
  explicit Limits(const std::map<std::string, std::int64_t>& given);
};

struct LimitRow {
  std::string_view name;  // NAME in --limit=NAME=VALUE
  std::int64_t Limits::*member;
  std::int64_t preset;
  std::string_view counts;  // what the limit counts, in words
};
std::span<const LimitRow> limit_rows();

// The error for `found` beyond the limit, without a place in the file.
Error::Parts beyond_limit(const Limits& limits, std::int64_t Limits::*member, std::int64_t found);

}  // namespace fusec
