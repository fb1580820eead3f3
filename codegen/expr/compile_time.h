// What NVRTC takes for a kernel, cubin included, as its text tells: so much for each word of it, and for each operator,
// loop and function, as often as unrolled loops and calls of lambdas repeat them.
//
//   #pragma unroll
//   for (int e = 0; e < 8; ++e) y[e] = tanf(x[e]);     eight tangents, 11 ms each
//
// Milliseconds of CPU time on a quiet machine, by least squares over 2300 kernels of networks, random graphs, products
// and attention, rounded: of those that are predicted to take 220 to 310, one in twenty takes less than 150, one in
// twenty more than 308, one in a hundred more than 360. `tests/check_nvrtc_time.py` measures what kernels take.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace fusec {

// As much as a kernel is meant to take: what is predicted too low stays below 400. Beyond it functions are called and
// loops unrolled less, which costs little; kernels become several launches only beyond the second.
inline constexpr double kMaxCompileMs = 305, kMaxLaunchCompileMs = 355;
// What a call of a function that is no copy of it takes more, at most: beside many registers that are kept across it.
inline constexpr double kCallMs = 1.2;

// A function of the CUDA library, or of the prelude, that is much code wherever it stands.
struct LargeFunction {
  std::string_view name;  // of floats; doubles' are without the f
  double ms = 0;          // of a copy
  int operands = 1;
};
struct CalledFunction {
  const LargeFunction* function = nullptr;
  bool is_double = false;

  double ms() const;
};
// Nothing of what is no large function.
std::optional<CalledFunction> large_function(std::string_view name);

struct CompileTime {
  double ms = 0;
  double calls = 0;                                   // of functions that are no copies
  std::map<std::string, double, std::less<>> copies;  // of large functions
};

CompileTime compile_time(std::string_view text);

// Calls `visit(first, last)` for each word of the text with a parenthesis behind it, or with a list of template
// arguments and a parenthesis.
void for_each_call(std::string_view text, const std::function<void(std::size_t, std::size_t)>& visit);

}  // namespace fusec
