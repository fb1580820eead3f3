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
void unroll_as_fits(KernelSource& source) {
  constexpr double kSomeMs = 10;
  const std::string text = std::move(source.text);
  std::vector<int> iterations(loops_in(text), 0);
  const auto ms = [&] {
    const CompileTime time = compile_time(with_loops(text, iterations));
    return time.ms + time.calls * kCallMs;
  };
  double now = iterations.empty() ? 0 : ms();
  while (now > kMaxCompileMs) {
    int* longest = nullptr;
    double least = now - kSomeMs;
    for (int& of_loop : iterations) {
      if (of_loop != 0) continue;
      of_loop = 1;
      if (const double without = ms(); without < least) longest = &of_loop, least = without;
      of_loop = 0;
    }
    if (longest == nullptr) break;
    for (const int of_loop : {4, 2, 1}) {
      *longest = of_loop;
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
  // Kernels with warpgroup registers have registers by number and asynchronous MMAs in flight: calls are not possible.
  if (source.has_named_registers || source.schedule.unit == MatrixUnit::kWarpgroup) return;
  CompileTime time = compile_time(source.text);
  while (time.ms > kMaxCompileMs && !time.copies.empty()) {
    const auto ms_of = [](const auto& f) { return (f.second - 1) * large_function(f.first)->ms(); };
    const auto most = std::ranges::max_element(time.copies, {}, ms_of);
    if (most->second < 2) return;
    source.text = with_calls(source.text, most->first);
    time.ms -= ms_of(*most);
    time.copies.erase(most);
  }
}

}  // namespace

// Calls come first: a loop that is not fully unrolled puts its arrays into local memory.
void limit_unrolling(KernelSource& source) {
  call_large_functions(source);
  unroll_as_fits(source);
}

}  // namespace fusec
