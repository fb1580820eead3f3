#include "transforms/patterns/builtin_patterns.h"

#include <algorithm>
#include <iterator>

#include "transforms/patterns/gated_layout.h"
#include "transforms/patterns/pattern_text.h"

namespace fusec {
namespace {

// Gated units report the layout of gate and up as attributes of their group.
void add_code(FusionPattern& pattern) {
  const auto has = [&](std::string_view name) { return std::ranges::find(pattern.names, name) != pattern.names.end(); };
  if (pattern.becomes == Becomes::kGroup && has("gate") && has("up")) pattern.attributes_getter = gated_layout;
}

std::vector<FusionPattern> parse_builtin(std::string_view text) {
  std::vector<FusionPattern> patterns = parse_patterns(text, "");
  for (FusionPattern& pattern : patterns) add_code(pattern);
  return patterns;
}

}  // namespace

std::vector<FusionPattern> builtin_patterns() {
  static const std::vector<FusionPattern> patterns = [] {
    std::vector<FusionPattern> all;
    for (const std::string_view text : builtin_pattern_files())
      std::ranges::move(parse_builtin(text), std::back_inserter(all));
    return all;
  }();
  return patterns;
}

FusionPattern parse_builtin_pattern(const BuiltinPattern& listed) {
  return std::move(parse_builtin(listed.text).front());
}

}  // namespace fusec
