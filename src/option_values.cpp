#include "option_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "ir/error.h"
#include "ir/spelling.h"

namespace fusec {
namespace {

// The check `inner` of CLI11 with an error of ours.
CLI::Validator with_own_error(const CLI::Option& option, CLI::Validator inner, std::string expected) {
  return {[name = option.get_name(), inner = std::move(inner),
           expected = std::move(expected)](std::string& text) -> std::string {
            const std::string given = text;
            bool good = false;
            try {
              good = inner(text).empty();
            } catch (const CLI::ValidationError&) {
            }
            if (!good) throw Error(ErrorKind::kUsage, {.what = name, .found = in_quotes(given), .expected = expected});
            return "";
          },
          ""};
}

}  // namespace

CLI::Option* one_of(CLI::Option* option, std::vector<std::string> names) {
  std::string form = fmt::format("{}", fmt::join(names, "|"));
  return option->check({[name = option->get_name(), names = std::move(names)](std::string& text) -> std::string {
                          if (std::ranges::find(names, text) != names.end()) return "";
                          const std::vector<std::string_view> candidates(names.begin(), names.end());
                          throw Error(ErrorKind::kUsage, {.what = name,
                                                          .found = in_quotes(text),
                                                          .expected = "one of " + listed(names),
                                                          .hint = did_you_mean(text, candidates)});
                        },
                        std::move(form)});
}

CLI::Option* whole_number(CLI::Option* option, int least) {
  constexpr int kMost = std::numeric_limits<int>::max();
  return option->check(
      with_own_error(*option, CLI::Range(least, kMost), fmt::format("a whole number from {} to {}", least, kMost)));
}

CLI::Option* seconds_of_time(CLI::Option* option) {
  return option->check(with_own_error(*option, CLI::NonNegativeNumber, "a number of seconds, not negative"));
}

CLI::Option* size_in_bytes(CLI::Option* option) {
  const auto size = [units = CLI::AsSizeValue(false)](std::string& text) -> std::string {
    return text.starts_with('-') ? "negative" : units(text);  // CLI11 would wrap it around to a large number
  };
  return option->transform(with_own_error(*option, CLI::Validator(size, ""), "a size, as 512M or 2G"));
}

}  // namespace fusec
