#include "transforms/patterns/builtin_patterns.h"

#include "transforms/patterns/pattern_text.h"

namespace fusec {

std::vector<FusionPattern> builtin_patterns() {
  static const std::vector<FusionPattern> patterns = [] {
    std::vector<FusionPattern> all;
    for (const std::string_view text : builtin_pattern_files())
      for (FusionPattern& pattern : parse_patterns(text, "")) all.push_back(std::move(pattern));
    return all;
  }();
  return patterns;
}

}  // namespace fusec
