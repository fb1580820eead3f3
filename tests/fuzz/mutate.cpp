#include "fuzz/mutate.h"

#include <cctype>
#include <string_view>

namespace fusec::fuzzing {
namespace {

struct Stretch {
  std::size_t begin = 0, end = 0;
};

std::size_t pick(std::mt19937& random, std::size_t below) {
  return below == 0 ? 0 : random() % below;
}

bool in_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '%' || c == '$' || c == ':';
}

// The word at or behind a random place; empty where none follows.
Stretch random_word(std::string_view text, std::mt19937& random) {
  std::size_t begin = pick(random, text.size());
  while (begin < text.size() && !in_word(text[begin])) ++begin;
  while (begin > 0 && begin < text.size() && in_word(text[begin - 1])) --begin;
  std::size_t end = begin;
  while (end < text.size() && in_word(text[end])) ++end;
  return {begin, end};
}

Stretch random_line(std::string_view text, std::mt19937& random) {
  const std::size_t at = pick(random, text.size());
  std::size_t begin = text.rfind('\n', at), end = text.find('\n', at);
  begin = begin == std::string_view::npos ? 0 : begin + 1;
  end = end == std::string_view::npos ? text.size() : end + 1;
  return {std::min(begin, end), end};
}

// What stands between a random bracket or quote and the one that closes it, with both; empty where none follows.
Stretch random_enclosed(std::string_view text, std::mt19937& random) {
  const std::size_t begin = text.find_first_of("[{(\"", pick(random, text.size()));
  if (begin == std::string_view::npos) return {};
  if (text[begin] == '"') {
    const std::size_t end = text.find('"', begin + 1);
    return end == std::string_view::npos ? Stretch{} : Stretch{begin, end + 1};
  }
  int depth = 0;
  for (std::size_t end = begin; end < text.size(); ++end) {
    if (text[end] == '[' || text[end] == '{' || text[end] == '(') ++depth;
    if ((text[end] == ']' || text[end] == '}' || text[end] == ')') && --depth == 0) return {begin, end + 1};
  }
  return {};
}

std::string cut(const std::string& text, const Stretch& stretch) {
  return text.substr(stretch.begin, stretch.end - stretch.begin);
}

std::string number(std::mt19937& random) {
  static const char* const kNumbers[] = {"0",
                                         "1",
                                         "2",
                                         "3",
                                         "4",
                                         "7",
                                         "8",
                                         "16",
                                         "31",
                                         "32",
                                         "33",
                                         "63",
                                         "64",
                                         "255",
                                         "256",
                                         "1023",
                                         "0xffffffff",
                                         "0x80000000",
                                         "-1",
                                         "-2",
                                         "-8",
                                         "4096",
                                         "65536",
                                         "0x7fffffffffffffff",
                                         "0x8000000000000000",
                                         "16777216",
                                         "0.5",
                                         "-0.0",
                                         "1e308",
                                         "1e-320",
                                         "1e999",
                                         "2147483647",
                                         "9223372036854775807",
                                         "-9223372036854775808",
                                         "18446744073709551616",
                                         "null",
                                         "true"};
  return kNumbers[pick(random, std::size(kNumbers))];
}

void edit(std::string& text, const std::vector<std::string>& others, std::mt19937& random) {
  static const std::string kCharacters = "0123456789abcdefrxu%.,;:[]{}()<>|@!+-_~?*/\\\" \n";
  const std::string& other = others.empty() || random() % 2 == 0 ? text : others[pick(random, others.size())];
  switch (random() % 13) {
    case 0: {
      const Stretch word = random_word(text, random);
      text.replace(word.begin, word.end - word.begin, number(random));
      break;
    }
    case 1:
    case 2: {
      const std::string from = cut(other, random_word(other, random));
      const Stretch word = random_word(text, random);
      text.replace(word.begin, word.end - word.begin, from);
      break;
    }
    case 3: {
      const Stretch line = random_line(text, random);
      text.erase(line.begin, line.end - line.begin);
      break;
    }
    case 4:
    case 5: {
      const std::string from = cut(other, random_line(other, random));
      text.insert(random_line(text, random).begin, from);
      break;
    }
    case 6: {  // an instruction moves
      const Stretch line = random_line(text, random);
      const std::string kept = cut(text, line);
      text.erase(line.begin, line.end - line.begin);
      text.insert(random_line(text, random).begin, kept);
      break;
    }
    case 7: {
      const Stretch word = random_word(text, random);
      text.erase(word.begin, word.end - word.begin);
      break;
    }
    case 8:
    case 9: {
      const std::string from = cut(other, random_enclosed(other, random));
      const Stretch enclosed = random_enclosed(text, random);
      text.replace(enclosed.begin, enclosed.end - enclosed.begin, from);
      break;
    }
    case 10: {  // one more of the same in a list
      const Stretch enclosed = random_enclosed(text, random);
      text.insert(enclosed.end, ", " + cut(text, enclosed));
      break;
    }
    case 11:
      text.insert(pick(random, text.size() + 1), 1, kCharacters[pick(random, kCharacters.size())]);
      break;
    default:
      if (!text.empty()) text[pick(random, text.size())] = kCharacters[pick(random, kCharacters.size())];
      break;
  }
}

}  // namespace

std::string mutate(std::string text, const std::vector<std::string>& others, std::mt19937& random) {
  do edit(text, others, random);
  while (random() % 2 == 0);
  return text;
}

}  // namespace fusec::fuzzing
