#include "help_text.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "terminal.h"

namespace fusec {
namespace {

struct OptionGroup {
  const char* title;
  std::vector<const char*> options;
};

// In the order in which --help shows them. What stands nowhere here comes last, as "Other options".
const std::vector<OptionGroup>& groups() {
  static const std::vector<OptionGroup> list = {
      {"Output", {"-o", "--emit", "--no-nvrtc", "--name", "--json", "--quiet", "--verbose", "--color"}},
      {"Running", {"--device", "--inputs", "--outputs", "--random", "--host-part", "--bench", "--profile", "--tune"}},
      {"Checking results", {"--verify", "--expect", "--tolerance", "--sample-blocks"}},
      {"Any PTX file", {"--ptx", "--kernel", "--grid", "--block", "--cluster", "--shared", "--arg"}},
      {"Target", {"--arch", "--target", "--symbol", "--tuning-db"}},
      {"Fusion",
       {"--strategy", "--max-fused-ops", "--max-args", "--no-fuse", "--no-fuse-node", "--patterns", "--disable-pattern",
        "--disable-pass", "--gemm", "--plan"}},
      {"Numerics", {"--round-intermediates", "--precise-math", "--allow-tf32", "--allow-atomics"}},
      {"Why it is so",
       {"--explain", "--require-one-kernel", "--bisect", "--dump-ir-before", "--dump-ir-after", "--time-passes",
        "--stats", "--against"}},
      {"What this build knows",
       {"--list-ops", "--list-patterns", "--list-passes", "--list-targets", "--version", "--help"}},
      {"Limits and cache",
       {"--max-memory", "--timeout", "--plan-deadline", "--max-file-size", "--limit", "--jobs", "--cache-dir",
        "--cache-size", "--no-cache"}}};
  return list;
}

constexpr const char* kOthers = "Other options";

// Text in lines of at most `width`, the later ones indented.
std::string wrapped(const std::string& text, std::size_t width, std::size_t indent) {
  std::string out;
  std::size_t column = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::size_t length = end - at;
    if (column > 0 && column + 1 + length > width) {
      out += "\n" + std::string(indent, ' ');
      column = 0;
    }
    if (column > 0) out += ' ', ++column;
    out.append(text, at, length);
    column += length;
    at = end + 1;
  }
  return out;
}

// "NAME=VALUE", "KIND[=FILE]", "A,B,...": capitals and punctuation.
bool is_form(const std::string& text) {
  return !text.empty() && text.size() <= 24 &&
         std::ranges::none_of(text, [](unsigned char c) { return std::islower(c) || c == ' '; }) &&
         std::ranges::any_of(text, [](unsigned char c) { return std::isupper(c); });
}

class HelpFormat : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode) const override {
    std::string text = make_description(app) + make_usage(app, std::move(name)) + make_positionals(app);
    const auto append = [&](const std::string& title) {
      const auto options = app->get_options(
          [&](const CLI::Option* option) { return option->get_group() == title && option->nonpositional(); });
      if (!options.empty()) text += make_group(title, false, options);
    };
    for (const OptionGroup& group : groups()) append(group.title);
    append(kOthers);
    return text;
  }

  // Of `fusec diff`, whose files are no list of any length.
  std::string make_usage(const CLI::App* app, std::string name) const override {
    if (!app->get_option_no_throw("sides")) return CLI::Formatter::make_usage(app, std::move(name));
    return "Usage: " + name + " diff [OPTIONS] A [B]\n";
  }

  // The value's form goes with the name.
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    constexpr std::size_t kIndent = 30;
    const std::size_t width = std::max<std::size_t>(terminal_width(), 70);
    std::string name = option->get_name(is_positional, true);
    std::string what = option->get_description();
    if (option->get_items_expected_max() > 0 && !is_positional) {
      const std::string form = value_form(*option);
      name += "=" + form;
      if (what.starts_with(form + ": ")) what.erase(0, form.size() + 2);
    }
    if (!option->get_default_str().empty()) what += " (default: " + option->get_default_str() + ")";
    std::string text = "  " + name;
    if (text.size() + 2 > kIndent) text += "\n" + std::string(kIndent, ' ');
    text += std::string(text.size() < kIndent ? kIndent - text.size() : 0, ' ');
    return text + wrapped(what, width - kIndent - 1, kIndent) + "\n";
  }
};

}  // namespace

std::string value_form(const CLI::Option& option) {
  const std::string type = option.get_type_name(), what = option.get_description();
  if (type.find('|') != std::string::npos) return type.substr(type.find(':') + 1);
  const std::size_t colon = what.find(": ");
  return colon != std::string::npos && is_form(what.substr(0, colon)) ? what.substr(0, colon) : "VALUE";
}

void arrange_help(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // not shown
    option->group(kOthers);
    for (const OptionGroup& group : groups())
      for (const char* name : group.options)
        if (option->check_name(name)) option->group(group.title);
  }
  app.formatter(std::make_shared<HelpFormat>());
}

}  // namespace fusec
