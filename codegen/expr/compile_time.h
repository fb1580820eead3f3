// Predicts how long NVRTC takes to compile a kernel, cubin included, from the kernel's text. Each token, operator, loop
// and function call has a cost, multiplied by the trip counts of the unrolled loops around it.
//
//   #pragma unroll
//   for (int e = 0; e < 8; ++e) y[e] = tanf(x[e]);     eight copies of tanf, 11 ms each
//
// The unit is milliseconds of CPU time on a quiet machine. The costs are a least-squares fit;
// `tests/kernels/nvrtc_time.py` compares the prediction with measured times.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace fusec {

// Limits for one kernel and for one launch, in milliseconds. They leave room for an underestimate: real times stay
// below 400 ms. Above the first limit, functions are called instead of inlined and loops are unrolled less. Above the
// second limit, a kernel is split into several launches.
inline constexpr double kMaxCompileMs = 305, kMaxLaunchCompileMs = 355;
// Extra milliseconds of a call that is not inlined: an upper bound, reached when many registers are live across the
// call.
inline constexpr double kCallMs = 1.2;

// A function of the CUDA library or of the prelude that compiles to much code at every call site.
struct LargeFunction {
  std::string_view name;  // name of the float version; the double version has no trailing f
  double ms = 0;          // milliseconds per inlined copy
  int operands = 1;
};
struct CalledFunction {
  const LargeFunction* function = nullptr;
  bool is_double = false;

  double ms() const;
};
// Null if `name` is not a large function.
std::optional<CalledFunction> large_function(std::string_view name);

struct CompileTime {
  double ms = 0;
  double calls = 0;                                   // calls that are not inlined
  std::map<std::string, double, std::less<>> copies;  // inlined copies of each large function
};

CompileTime compile_time(std::string_view text);

// Calls `visit(first, last)` with the text range of each name that is followed by "(", or by template arguments and
// "(".
void for_each_call(std::string_view text, const std::function<void(std::size_t, std::size_t)>& visit);

}  // namespace fusec
