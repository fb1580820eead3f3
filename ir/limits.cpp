#include "ir/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "ir/spelling.h"

namespace fusec {
namespace {

constexpr LimitRow kRows[] = {
    {"symbols", &Limits::symbols, 1'000, "symbols of the model"},
    {"dimension-size", &Limits::dimension_size, 64,
     "divisions, remainders, minima and maxima in an inferred dimension"},
    {"dimension-terms", &Limits::dimension_terms, 256, "terms of an inferred dimension, as of a sum of symbols"},
    {"values", &Limits::values, 4'000'000, "results of all nodes of the model together"},
    {"results", &Limits::results, 16'384, "results of one node, as the pieces of a split"},
    {"operands", &Limits::operands, 16'384, "operands of one node, as the tensors of a concat"},
    {"tuple-fields", &Limits::tuple_fields, 1'000'000,
     "fields of all tuples of the model together, those of nested tuples counted wherever they stand"},
    {"tuple-depth", &Limits::tuple_depth, 256, "tuples inside one another"},
    {"pattern-growth", &Limits::pattern_growth, 8,
     "nodes that the replacements of patterns make, as a multiple of the model's nodes"},
    {"pattern-rounds", &Limits::pattern_rounds, 64, "rounds in which patterns rewrite what an earlier round made"},
};

}  // namespace

std::span<const LimitRow> limit_rows() {
  return kRows;
}

Limits::Limits() {
  for (const LimitRow& row : kRows) this->*row.member = row.preset;
}

Limits::Limits(const std::map<std::string, std::int64_t>& given) : Limits() {
  for (const auto& [name, value] : given) {
    const auto row = std::ranges::find(kRows, std::string_view(name), &LimitRow::name);
    if (row == std::end(kRows)) {
      std::vector<std::string_view> names;
      std::vector<std::string> list;
      for (const LimitRow& known : kRows) names.push_back(known.name), list.emplace_back(known.name);
      throw Error(ErrorKind::kUsage, {.what = "no such limit",
                                      .found = in_quotes(name),
                                      .expected = "one of " + listed(list),
                                      .hint = did_you_mean(name, names)});
    }
    if (value < 0)
      throw Error(
          ErrorKind::kUsage,
          {.what = fmt::format("the limit {}", name), .found = std::to_string(value), .expected = "at least 0"});
    this->*row->member = value;
  }
}

Error::Parts beyond_limit(const Limits& limits, std::int64_t Limits::*member, std::int64_t found) {
  const LimitRow& row = *std::ranges::find(kRows, member, &LimitRow::member);
  return {.what = fmt::format("the limit {} is exceeded: {}", row.name, row.counts),
          .found = std::to_string(found),
          .expected = fmt::format("at most {}", limits.*member),
          .hint = fmt::format("--limit={}=VALUE raises it", row.name)};
}

}  // namespace fusec
