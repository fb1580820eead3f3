#include "transforms/patterns/builtin_patterns.h"

#include <algorithm>

#include "transforms/patterns/gated_layout.h"
#include "transforms/patterns/pattern_text.h"

namespace fusec {
namespace {

// Gated units report the layout of gate and up as attributes of their group.
void add_code(FusionPattern& pattern) {
  const auto has = [&](std::string_view name) { return std::ranges::find(pattern.names, name) != pattern.names.end(); };
  if (pattern.becomes == Becomes::kGroup && has("gate") && has("up")) pattern.attributes_getter = gated_layout;
}

}  // namespace

std::vector<FusionPattern> builtin_patterns() {
  static const std::vector<FusionPattern> patterns = [] {
    std::vector<FusionPattern> all;
    for (const std::string_view text : builtin_pattern_files())
      for (FusionPattern& pattern : parse_patterns(text, "")) {
        add_code(pattern);
        all.push_back(std::move(pattern));
      }
    return all;
  }();
  return patterns;
}

}  // namespace fusec
