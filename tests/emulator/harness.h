// What the tests of the emulator share: a kernel body wrapped into a module, run with one buffer in and one out.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/emulator/emulator.h"

namespace fusec::emulator::testing {

// A module of one kernel `k` over the pointers `in` and `out`; %rin and %rout hold them, %tid the thread's number.
std::string kernel_text(const std::string& body, const std::string& globals = {});

struct RunResult {
  std::vector<std::uint32_t> out;
  Report report;
  bool has(FindingKind kind) const;
};

// Runs `body` with `threads` threads in each of `blocks` blocks. `out` has `out_words` words, at first unwritten.
RunResult run_body(const std::string& body, const std::vector<std::uint32_t>& in, std::size_t out_words,
                   std::uint32_t threads = 32, std::uint32_t blocks = 1, const std::string& globals = {},
                   Options options = {}, std::uint32_t dynamic_shared = 0);

// Evaluates one instruction on one lane: operands %a0, %a1, ... of the given bits and types, result %d.
std::uint64_t evaluate(const std::string& instruction, const std::string& result_type,
                       const std::vector<std::pair<std::string, std::uint64_t>>& operands);

inline std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return bits;
}
inline std::uint64_t bits_of(double value) {
  std::uint64_t bits;
  std::memcpy(&bits, &value, 8);
  return bits;
}
inline float float_of(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

}  // namespace fusec::emulator::testing
