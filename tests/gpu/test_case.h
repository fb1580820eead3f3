// What the suite compares: a launch for a seed, and a judgement of two results.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gpu/launch.h"

namespace fusec::gpu_test {

struct Verdict {
  std::uint64_t results = 0, wrong = 0;
  double worst = 0;   // the largest error, as a part of the bound; exact cases: 0 or 1
  std::string first;  // the first wrong one, in words
};

struct TestCase {
  std::string name;
  std::string bound;    // "bit for bit", "2 ulp", ...
  int capability = 80;  // the least that has the instruction
  bool only_sm_90a = false;
  std::function<TestLaunch(std::uint32_t seed)> launch;
  // `device`'s results against the emulator's; it may run further launches on the emulator.
  std::function<Verdict(const TestLaunch& launch, const std::vector<std::uint32_t>& device,
                        const std::vector<std::uint32_t>& emulated, Executor& emulator)>
      judge;
  // The results worked out without the emulator, where that is simple; used by the self-check.
  std::function<std::vector<std::uint32_t>(const TestLaunch& launch)> model;
};

std::vector<TestCase> scalar_cases();  // one instruction on many random operands
std::vector<TestCase> matrix_cases();  // mma.sync and wgmma on random fragments

// The head and tail around a kernel's body: %rin, %rout and %t (the thread's number in the grid) are set.
std::string kernel_text(const std::string& body, const std::string& target);

}  // namespace fusec::gpu_test
