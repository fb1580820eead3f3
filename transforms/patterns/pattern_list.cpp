#include "transforms/patterns/pattern_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "ir/error.h"
#include "ir/spelling.h"

namespace fusec {

struct ListedPattern::Shared {
  const BuiltinPattern* listed = nullptr;  // nothing for a pattern that was parsed before
  std::mutex mutex;                        // held while it is parsed, which may throw where a limit is exceeded
  std::atomic<bool> is_parsed = false;
  std::optional<FusionPattern> pattern;
};

ListedPattern::ListedPattern(FusionPattern pattern) : shared_(std::make_shared<Shared>()) {
  shared_->pattern = std::move(pattern);
}

ListedPattern::ListedPattern(const BuiltinPattern& listed) : shared_(std::make_shared<Shared>()) {
  shared_->listed = &listed;
}

std::string_view ListedPattern::name() const {
  return shared_->listed ? shared_->listed->name : shared_->pattern->name;
}

int ListedPattern::priority() const {
  return shared_->listed ? shared_->listed->priority : shared_->pattern->priority;
}

Becomes ListedPattern::becomes() const {
  return shared_->listed ? shared_->listed->becomes : shared_->pattern->becomes;
}

bool ListedPattern::is_builtin() const {
  return shared_->listed || shared_->pattern->file.empty();
}

std::string_view ListedPattern::needed_ops() const {
  return shared_->listed ? shared_->listed->needed_ops : "";
}

const FusionPattern& ListedPattern::operator*() const {
  if (shared_->listed && !shared_->is_parsed) {
    const std::lock_guard lock(shared_->mutex);
    if (!shared_->pattern) shared_->pattern = parse_builtin_pattern(*shared_->listed);
    shared_->is_parsed = true;
  }
  return *shared_->pattern;
}

PatternList listed(std::span<const BuiltinPattern> table) {
  PatternList patterns;
  for (const BuiltinPattern& each : table) patterns.emplace_back(each);
  return patterns;
}

PatternList ordered(PatternList patterns) {
  std::map<std::string_view, const ListedPattern*> named;
  for (const ListedPattern& p : patterns) {
    const auto [first, is_new] = named.emplace(p.name(), &p);
    if (is_new) continue;
    // Name the user's file, which the user can change, rather than a built-in one.
    const auto file_of = [](const ListedPattern& of) { return of.is_builtin() ? std::string() : of->file; };
    const bool first_is_builtin = first->second->is_builtin();
    const std::string other = first_is_builtin ? "" : file_of(p);
    throw Error(ErrorKind::kInput,
                {.file = first_is_builtin ? file_of(p) : file_of(*first->second),
                 .what = "two patterns of one name",
                 .found = in_quotes(p.name()),
                 .expected = fmt::format("another name than {} has",
                                         other.empty() ? "a built-in pattern" : "a pattern of " + other)});
  }
  std::ranges::stable_sort(patterns, [](const auto& a, const auto& b) { return a.priority() > b.priority(); });
  return patterns;
}

PatternList ordered(std::vector<FusionPattern> patterns) {
  PatternList list;
  for (FusionPattern& p : patterns) list.emplace_back(std::move(p));
  return ordered(std::move(list));
}

}  // namespace fusec
