// One instruction on one lane, by the type of its operands.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "emulator/harness.h"

namespace fusec::emulator::testing {

inline constexpr std::uint64_t kNan = 0x7fffffff, kInfinity = 0x7f800000, kNegativeZero = 0x80000000;

// `op d, a0, a1, ...` on values of one type.
inline std::uint64_t apply(const std::string& op, const std::string& type, const std::vector<std::uint64_t>& values,
                           const std::string& result = {}) {
  std::string text = op + " %d";
  std::vector<std::pair<std::string, std::uint64_t>> operands;
  for (std::size_t i = 0; i < values.size(); ++i) {
    text += fmt::format(", %a{}", i);
    operands.emplace_back(type, values[i]);
  }
  return evaluate(text, result.empty() ? type : result, operands);
}

inline std::uint64_t f32(const std::string& op, const std::vector<float>& values) {
  std::vector<std::uint64_t> raw;
  for (float value : values) raw.push_back(bits_of(value));
  return apply(op, "b32", raw);
}
inline std::uint64_t f64(const std::string& op, const std::vector<double>& values) {
  std::vector<std::uint64_t> raw;
  for (double value : values) raw.push_back(bits_of(value));
  return apply(op, "b64", raw);
}
inline std::uint64_t u32(const std::string& op, const std::vector<std::uint64_t>& values) {
  return apply(op, "b32", values);
}
inline std::uint64_t u64(const std::string& op, const std::vector<std::uint64_t>& values) {
  return apply(op, "b64", values);
}
inline std::uint64_t cvt(const std::string& op, const std::string& to, const std::string& from, std::uint64_t value) {
  return evaluate(op + " %d, %a0", to, {{from, value}});
}

}  // namespace fusec::emulator::testing
