// The patterns that a compilation tries, in order. A built-in pattern is parsed when it is first looked into: most
// models lack the ops that most patterns need, and parsing all would take much of the time of a small model.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "transforms/patterns/builtin_patterns.h"
#include "transforms/patterns/pattern.h"

namespace fusec {

// Copies share the parsed pattern, also between threads.
class ListedPattern {
 public:
  explicit ListedPattern(FusionPattern pattern);
  explicit ListedPattern(const BuiltinPattern& listed);

  // These parse nothing.
  std::string_view name() const;
  int priority() const;
  Becomes becomes() const;
  bool is_builtin() const;
  std::string_view needed_ops() const;  // as of BuiltinPattern; "" if that is unknown

  // The first of these parses a built-in pattern.
  const FusionPattern& operator*() const;
  const FusionPattern* operator->() const { return &**this; }

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

using PatternList = std::vector<ListedPattern>;

// The list keeps references to the table's entries.
PatternList listed(std::span<const BuiltinPattern> table);

// Sorts patterns by descending priority, keeping the order of equal ones. Throws Error(kInput) if two have one name.
PatternList ordered(PatternList patterns);
PatternList ordered(std::vector<FusionPattern> patterns);

}  // namespace fusec
