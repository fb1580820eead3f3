#include "usage_errors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "emissions.h"
#include "help_text.h"
#include "ir/spelling.h"

namespace fusec {
namespace {

constexpr const char* kHelp = "--help lists the options";
constexpr std::string_view kCommands[] = {"diff", "view", "cache", "doctor", "help"};

// Of the two programs, fusec alone has kinds of output, and commands.
bool is_fusec(const CLI::App& app) {
  return app.get_option_no_throw("--emit") != nullptr;
}

Error unknown_option(const CLI::App& app, const std::string& option) {
  std::vector<std::string> spelled, meant;
  const auto add = [&](std::string name, std::string meaning) {
    spelled.push_back(std::move(name));
    meant.push_back(std::move(meaning));
  };
  for (const CLI::Option* known : app.get_options())
    for (const std::string& name : known->get_lnames()) add("--" + name, "--" + name);
  for (const CLI::Option* known : app.get_options())
    for (const std::string& name : known->get_snames()) add("-" + name, "-" + name);
  if (is_fusec(app))
    for (const std::string_view kind : emission_kinds()) add(fmt::format("--{}", kind), fmt::format("--emit={}", kind));
  const std::vector<std::string_view> names(spelled.begin(), spelled.end());
  const std::string_view nearest = nearest_name(option, names);
  const std::size_t at = static_cast<std::size_t>(std::ranges::find(names, nearest) - names.begin());
  return {ErrorKind::kUsage,
          Error::Parts{.what = "unknown option " + option,
                       .hint = nearest.empty() ? kHelp : fmt::format("did you mean {}?", meant[at])}};
}

// A further word after the model. The first word may be meant as a command.
Error further_word(const CLI::App& app, const std::string& word) {
  const CLI::Option* const model = app.get_option_no_throw("model");
  const std::string first = model && !model->results().empty() ? model->results().front() : "";
  if (first == "help")
    return {ErrorKind::kUsage, Error::Parts{.what = "no such command",
                                            .found = in_quotes(word),
                                            .expected = fmt::format("one of {}", fmt::join(kCommands, ", ")),
                                            .hint = did_you_mean(word, kCommands)}};
  std::string hint;
  std::error_code none;
  if (is_fusec(app) && !is_command(first)) {
    const std::string_view command = nearest_name(first, kCommands);
    hint = std::filesystem::exists(first, none) ? "fusec diff A B sets two models side by side"
           : !command.empty()                   ? fmt::format("did you mean fusec {}?", command)
                                                : "no word goes before the model: fusec " + word;
  }
  return {ErrorKind::kUsage,
          Error::Parts{.what = "one model at a time", .found = in_quotes(word) + " as well", .hint = std::move(hint)}};
}

// The option that an error of CLI11 is about; null where it does not begin with its name.
const CLI::Option* option_of(const CLI::App& app, std::string_view text, std::string_view before,
                             std::string_view after) {
  for (const CLI::Option* option : app.get_options())
    if (text.starts_with(fmt::format("{}{}{}", before, option->get_name(), after))) return option;
  return nullptr;
}

Error wrong_number_of_values(const CLI::Option& option) {
  const std::size_t values = option.results().size();
  if (values < 2)
    return {ErrorKind::kUsage,
            Error::Parts{.what = option.get_name(), .found = "no value", .expected = value_form(option)}};
  return {ErrorKind::kUsage,
          Error::Parts{.what = option.get_name(), .found = fmt::format("{} values", values), .expected = "one"}};
}

Error wrong_value(const CLI::Option& option) {
  const bool is_flag = option.get_items_expected_max() == 0;
  return {ErrorKind::kUsage, Error::Parts{.what = option.get_name(),
                                          .found = in_quotes(option.results().back()),
                                          .expected = is_flag ? "true or false, or no value" : "a number"}};
}

}  // namespace

bool is_command(std::string_view word) {
  return std::ranges::find(kCommands, word) != std::end(kCommands);
}

Error usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const std::string text = error.what();
  if (dynamic_cast<const CLI::ExtrasError*>(&error))
    if (const std::vector<std::string> left = app.remaining(); !left.empty())
      return left.front().starts_with('-') ? unknown_option(app, left.front().substr(0, left.front().find('=')))
                                           : further_word(app, left.front());
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error))
    if (const CLI::Option* option = option_of(app, text, "", ": ")) return wrong_number_of_values(*option);
  if (dynamic_cast<const CLI::ConversionError*>(&error))
    if (const CLI::Option* option = option_of(app, text, "Could not convert: ", " = ");
        option && !option->results().empty())
      return wrong_value(*option);
  if (dynamic_cast<const CLI::ExcludesError*>(&error))
    return {ErrorKind::kUsage, Error::Parts{.what = text, .hint = "leave one of them out"}};
  return {ErrorKind::kUsage, Error::Parts{.what = text, .hint = kHelp}};
}

void parse_options(CLI::App& app, std::vector<std::string> options) {
  std::ranges::reverse(options);  // CLI11 expects the last argument first
  try {
    app.parse(std::move(options));
  } catch (const CLI::ParseError& error) {
    throw usage_error(app, error);
  }
}

}  // namespace fusec
