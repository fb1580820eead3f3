// fusec_pattern_table FILE: writes the table of the built-in patterns as C++ (transforms/patterns/builtin_patterns.h).
// A program of the build; nothing installs it.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "transforms/patterns/builtin_patterns.h"
#include "transforms/patterns/pattern_text.h"
#include "transforms/patterns/pattern_tokens.h"

namespace fusec {
namespace {

// --- the ops that a pattern needs: sets of ops; a graph that it matches has at least one op of each set

using AnyOf = std::set<std::string_view>;
using Needs = std::set<AnyOf>;

constexpr std::size_t kMostWords =
    12;                                // in a set; larger sets are dropped, since nearly every graph has one of the ops
constexpr std::size_t kMostSets = 64;  // of a term

// Drops each set that contains another one: {add, mul} follows from {mul}. Keeps at most kMostSets, the smallest.
Needs least(const Needs& needs) {
  std::vector<AnyOf> sorted(needs.begin(), needs.end());
  std::ranges::stable_sort(sorted, {}, &AnyOf::size);
  Needs result;
  for (const AnyOf& each : sorted) {
    const bool says_less =
        std::ranges::any_of(result, [&](const AnyOf& kept) { return std::ranges::includes(each, kept); });
    if (!says_less && each.size() <= kMostWords && result.size() < kMostSets) result.insert(each);
  }
  return result;
}

// What follows from "a or b": {mul} or {silu} gives {mul, silu}. One set for each pair of sets.
Needs either(const Needs& a, const Needs& b) {
  Needs result;
  for (const AnyOf& x : a)
    for (const AnyOf& y : b) {
      AnyOf both = x;
      both.insert(y.begin(), y.end());
      result.insert(std::move(both));
    }
  return least(result);
}

Needs needs_of(const PatternTerm& term) {
  Needs result;
  if (term.kind == PatternTerm::Kind::kAlternatives) {
    result = needs_of(term.operands[0]);
    for (std::size_t i = 1; i < term.operands.size() && !result.empty(); ++i)
      result = either(result, needs_of(term.operands[i]));
    return result;
  }
  if (term.kind == PatternTerm::Kind::kNode) result.insert({term.op});
  for (const PatternTerm& operand : term.operands) result.merge(needs_of(operand));
  return least(result);
}

std::string text_of(const Needs& needs) {
  std::vector<std::string> words;
  for (const AnyOf& each : needs) words.push_back(fmt::format("{}", fmt::join(each, "|")));
  return fmt::format("{}", fmt::join(words, " "));
}

// --- texts

struct Declaration {
  bool is_form = false;
  std::string_view name, text;
  std::set<std::string_view> words;
};

// The declarations of a file, each from its "define" or "pattern" to the next.
std::vector<Declaration> declarations_of(std::string_view text) {
  std::vector<Declaration> all;
  const std::vector<PatternToken> tokens = pattern_tokens(text, "");
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    const PatternToken& token = tokens[i];
    const bool begins = token.kind == PatternToken::Kind::kWord && (token.text == "define" || token.text == "pattern");
    if (begins) {
      if (!all.empty())
        all.back().text = all.back().text.substr(0, token.offset - (all.back().text.data() - text.data()));
      all.push_back({token.text == "define", tokens[i + 1].text, text.substr(token.offset), {}});
    }
    if (!all.empty() && token.kind == PatternToken::Kind::kWord) all.back().words.insert(token.text);
  }
  return all;
}

// The declaration after the forms before it that it uses.
std::string whole_text(const std::vector<Declaration>& all, std::size_t number) {
  std::string text(all[number].text);
  std::set<std::string_view> words = all[number].words;
  for (std::size_t i = number; i-- > 0;) {
    if (!all[i].is_form || !words.contains(all[i].name)) continue;
    words.insert(all[i].words.begin(), all[i].words.end());
    text = std::string(all[i].text) + text;
  }
  return text;
}

std::string_view name_of(Becomes becomes) {
  return becomes == Becomes::kGroup ? "kGroup" : becomes == Becomes::kRewrite ? "kRewrite" : "kLibrary";
}

std::string entry(const FusionPattern& pattern, const std::string& text) {
  const std::vector<FusionPattern> alone = parse_patterns(text, "");
  if (alone.size() != 1 || alone[0].name != pattern.name || alone[0].names.size() != pattern.names.size() ||
      alone[0].match.operands.count_in_all() != pattern.match.operands.count_in_all())
    throw std::runtime_error(fmt::format("{} is another pattern without the rest of its file", pattern.name));
  return fmt::format("    {{\"{}\", {}, Becomes::{}, \"{}\",\n     R\"PATTERN({})PATTERN\"}},\n", pattern.name,
                     pattern.priority, name_of(pattern.becomes), text_of(needs_of(pattern.match)), text);
}

std::string table() {
  std::string entries;
  for (const std::string_view file : builtin_pattern_files()) {
    const std::vector<FusionPattern> patterns = parse_patterns(file, "");
    const std::vector<Declaration> all = declarations_of(file);
    std::size_t next = 0;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (!all[i].is_form) entries += entry(patterns.at(next++), whole_text(all, i));
  }
  return fmt::format(R"(// Made by fusec_pattern_table.
#ifdef __clang__
#pragma clang diagnostic ignored "-Woverlength-strings"
#endif
#include "transforms/patterns/builtin_patterns.h"

namespace fusec {{

std::span<const BuiltinPattern> builtin_pattern_table() {{
  static constexpr BuiltinPattern kTable[] = {{
{}  }};
  return kTable;
}}

}}  // namespace fusec
)",
                     entries);
}

}  // namespace
}  // namespace fusec

int main(int argc, char** argv) {
  try {
    if (argc != 2) throw std::runtime_error("usage: fusec_pattern_table FILE");
    const std::string table = fusec::table();
    std::ofstream file(argv[1]);
    file << table;
    if (!file.flush()) throw std::runtime_error(fmt::format("{} cannot be written", argv[1]));
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
