#include "ir/spelling.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ir/budget.h"
#include "ir/synonyms.h"

namespace fusec {
namespace {

constexpr std::size_t kQuotedBytes = 80;
constexpr std::size_t kLongestGuess = 64;  // bytes; longer words are not guessed

void append_escape(std::string& out, char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      break;
    case '\\':
      out += "\\\\";
      break;
    case '\n':
      out += "\\n";
      break;
    case '\r':
      out += "\\r";
      break;
    case '\t':
      out += "\\t";
      break;
    default:
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
  }
}

void append_escaped(std::string& out, std::string_view text) {
  const auto is_escaped = [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '"' || c == '\\';
  };
  std::size_t copied = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    count_step();
    if (!is_escaped(text[i])) continue;
    out += text.substr(copied, i - copied);
    append_escape(out, text[i]);
    copied = i + 1;
  }
  out += text.substr(copied);
}

// At most `bytes` of the text, without cutting a character.
std::string_view clipped(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xc0) == 0x80) --bytes;
  return text.substr(0, bytes);
}

}  // namespace

std::string json_string(std::string_view text) {
  std::string out = "\"";
  append_escaped(out, text);
  return out += '"';
}

std::string in_quotes(std::string_view text) {
  const std::string_view head = clipped(text, kQuotedBytes);
  if (head.size() == text.size()) return json_string(text);
  std::string out = "\"";
  append_escaped(out, head);
  return out + fmt::format("...\" ({} bytes)", text.size());
}

std::string listed(std::span<const std::string> names, std::size_t most) {
  std::string out;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i) out += (i ? ", " : "") + names[i];
  if (names.size() > most) out += fmt::format(", ... ({} in all)", names.size());
  return out;
}

std::size_t spelling_distance(std::string_view a, std::string_view b, std::size_t limit) {
  if (a.size() > b.size()) std::swap(a, b);
  if (b.size() - a.size() > limit || b.size() > kLongestGuess) return limit + 1;
  // Three rows of the usual table: the one being filled, the last, and the one before it (for swaps).
  std::array<std::array<std::size_t, kLongestGuess + 1>, 3> rows{};
  for (std::size_t j = 0; j <= b.size(); ++j) rows[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    count_step();
    auto& row = rows[i % 3];
    const auto& last = rows[(i + 2) % 3];
    const auto& before = rows[(i + 1) % 3];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return std::min(rows[a.size() % 3][b.size()], limit + 1);
}

namespace {

// The shortest candidate that begins with the word: "emu" is emulator.
std::string_view completed(std::string_view word, std::span<const std::string_view> candidates) {
  constexpr std::size_t kShortest = 3;
  std::string_view best;
  if (word.size() < kShortest) return best;
  for (const std::string_view candidate : candidates) {
    count_step();
    if (candidate.starts_with(word) && (best.empty() || candidate.size() < best.size())) best = candidate;
  }
  return best;
}

// The candidate with a synonym that is misspelt: "--outptu" is "--output", which is -o.
std::string_view by_misspelt_synonym(std::string_view word, std::span<const std::string_view> candidates) {
  std::size_t limit = std::min<std::size_t>(2, word.size() / 4);  // less than for names: more words are near by chance
  std::string_view best;
  for (const Synonyms& row : synonyms()) {
    if (limit == 0) break;
    const auto candidate = std::ranges::find(candidates, row.name);
    if (candidate == candidates.end()) continue;
    for (std::string_view rest = row.words; !rest.empty() && limit > 0;) {
      const std::string_view synonym = rest.substr(0, rest.find(' '));
      rest.remove_prefix(std::min(rest.size(), synonym.size() + 1));
      const std::size_t distance = spelling_distance(word, synonym, limit);
      if (distance > limit) continue;
      best = *candidate;
      limit = distance - 1;
    }
  }
  return best;
}

}  // namespace

std::string_view nearest_name(std::string_view word, std::span<const std::string_view> candidates) {
  if (const std::string_view name = name_by_synonym(word, candidates); !name.empty()) return name;
  // A third of the letters may differ, at most three: "sofmax" is softmax, "b" is not "a".
  std::size_t limit = std::min<std::size_t>(3, word.size() / 3);
  std::string_view best;
  for (const std::string_view candidate : candidates) {
    count_step();
    if (limit == 0) break;
    const std::size_t distance = spelling_distance(word, candidate, limit);
    if (distance == 0) return candidate;
    if (distance <= limit) {
      best = candidate;
      limit = distance - 1;
    }
  }
  if (best.empty()) best = completed(word, candidates);
  return best.empty() ? by_misspelt_synonym(word, candidates) : best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates) {
  const std::string_view name = nearest_name(word, candidates);
  return name.empty() ? "" : "did you mean " + in_quotes(name) + "?";
}

}  // namespace fusec
