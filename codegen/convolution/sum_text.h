// The text of sums of products in emitted code, without zeros and factors of one.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

namespace fusec {

// "4 * i", "i" or "0".
inline std::string times(std::int64_t count, const std::string& i) {
  return count == 1 || i == "0" ? i : fmt::format("{} * {}", count, i);
}

// The sum of the nonzero terms: "a + 4 * i".
inline std::string sum_of_terms(const std::vector<std::string>& terms) {
  std::string sum;
  for (const std::string& term : terms)
    if (term != "0") sum += (sum.empty() ? "" : " + ") + term;
  return sum.empty() ? "0" : sum;
}

inline std::string in_parentheses(const std::string& text) {
  return text.find(' ') == std::string::npos ? text : "(" + text + ")";
}

}  // namespace fusec
