#include "codegen/expr/limit_unrolling.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "codegen/expr/compile_time.h"

namespace fusec {
namespace {

// The text with the given unroll factor for each loop. 0: unchanged, including a number behind the placeholder.
std::string with_loops(const std::string& text, const std::vector<int>& iterations) {
  std::string result;
  std::size_t copied = 0;
  for (const int of_loop : iterations) {
    const std::size_t at = text.find(kUnrollToFit, copied);
    result += text.substr(copied, at - copied);
    result += "#pragma unroll";
    copied = at + kUnrollToFit.size();
    if (of_loop == 0) continue;
    result += fmt::format(" {}", of_loop);
    copied = std::min(text.find('\n', copied), text.size());
  }
  return result + text.substr(copied);
}

std::size_t loops_in(std::string_view text) {
  std::size_t loops = 0;
  for (std::size_t at = text.find(kUnrollToFit); at != std::string_view::npos; at = text.find(kUnrollToFit, at + 1))
    ++loops;
  return loops;
}

// Reduces the unroll factor of the most expensive loop first, to what fits. Loops below kSomeMs are left.
void unroll_as_fits(KernelSource& source, std::size_t loops) {
  constexpr double kSomeMs = 10;
  std::vector<int> iterations(loops, 0);
  const std::string text = std::move(source.text);
  const auto ms = [&] {
    const CompileTime time = compile_time(with_loops(text, iterations));
    source.compile_ms = time.ms;
    return time.ms + time.calls * kCallMs;
  };
  double now = ms();
  while (now > kMaxCompileMs) {
    std::optional<std::size_t> longest;
    double least = now - kSomeMs;
    for (std::size_t loop = 0; loop < iterations.size(); ++loop) {
      if (iterations[loop] != 0) continue;
      iterations[loop] = 1;
      if (const double without = ms(); without < least) longest = loop, least = without;
      iterations[loop] = 0;
    }
    if (!longest) {
      ms();
      break;
    }
    for (const int of_loop : {4, 2, 1}) {
      iterations[*longest] = of_loop;
      now = ms();
      if (now <= kMaxCompileMs) break;
    }
  }
  source.text = with_loops(text, iterations);
}

std::string with_calls(const std::string& text, std::string_view name) {
  std::string result;
  std::size_t copied = 0;
  for_each_call(text, [&](std::size_t first, std::size_t last) {
    if (std::string_view(text).substr(first, last - first) != name) return;
    result += text.substr(copied, first - copied) + "@KERNEL@_" + std::string(name);
    copied = last;
  });
  const CalledFunction called = *large_function(name);
  const bool either = !called.is_double && !name.ends_with('f');  // a prelude function for both float and double
  const std::string_view type = either ? "T" : called.is_double ? "double" : "float";
  const bool two = called.function->operands == 2;
  return fmt::format("{0}static __device__ __noinline__ {1} @KERNEL@_{2}({1} a{3}) {{ return {2}(a{4}); }}\n",
                     either ? "template <typename T>\n" : "", type, name, two ? fmt::format(", {} b", type) : "",
                     two ? ", b" : "") +
         result + text.substr(copied);
}

void call_large_functions(KernelSource& source) {
  CompileTime time = compile_time(source.text);
  source.compile_ms = time.ms;
  // Kernels with warpgroup registers have registers by number and asynchronous MMAs in flight: calls are not possible.
  if (source.has_named_registers || source.schedule.unit == MatrixUnit::kWarpgroup) return;
  const auto ms_of = [](const auto& f) { return (f.second - 1) * large_function(f.first)->ms(); };
  while (time.ms > kMaxCompileMs && !time.copies.empty()) {
    const auto most = std::ranges::max_element(time.copies, {}, ms_of);
    if (most->second < 2) return;
    source.text = with_calls(source.text, most->first);
    time = compile_time(source.text);
    source.compile_ms = time.ms;
  }
}

}  // namespace

// Calls come first: a loop that is not fully unrolled puts its arrays into local memory.
void limit_unrolling(KernelSource& source) {
  if (source.compile_ms) return;
  call_large_functions(source);
  if (const std::size_t loops = loops_in(source.text); loops > 0) unroll_as_fits(source, loops);
}

}  // namespace fusec
