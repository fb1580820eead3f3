#include "codegen/repeated_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "codegen/compile_time.h"

namespace fusec {
namespace {

// With loops that may be unrolled so often, 0: as a whole.
std::string with_loops(std::string text, int turns) {
  const std::string pragma = turns == 0 ? "#pragma unroll" : fmt::format("#pragma unroll {}", turns);
  for (std::size_t at = text.find(kUnrollAsFits); at != std::string::npos; at = text.find(kUnrollAsFits, at))
    text.replace(at, kUnrollAsFits.size(), pragma);
  return text;
}

double with_its_calls(const CompileTime& time) {
  return time.ms + time.calls * kCallMs;
}

void unroll_as_fits(KernelSource& source) {
  if (source.text.find(kUnrollAsFits) == std::string::npos) return;
  const std::string text = std::move(source.text);
  for (const int turns : {0, 4, 2, 1}) {
    source.text = with_loops(text, turns);
    if (with_its_calls(compile_time(source.text)) <= kMostCompileMs) return;
  }
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
  const bool either = !called.is_double && !name.ends_with('f');  // the prelude's, of floats and doubles
  const std::string_view type = either ? "T" : called.is_double ? "double" : "float";
  const bool two = called.function->operands == 2;
  return fmt::format("{0}static __device__ __noinline__ {1} @KERNEL@_{2}({1} a{3}) {{ return {2}(a{4}); }}\n",
                     either ? "template <typename T>\n" : "", type, name, two ? fmt::format(", {} b", type) : "",
                     two ? ", b" : "") +
         result + text.substr(copied);
}

void call_large_functions(KernelSource& source) {
  // Warpgroups have registers by number and products on the way: no call stands among them.
  if (source.names_registers || source.schedule.find("wgmma") != std::string::npos) return;
  CompileTime time = compile_time(source.text);
  while (time.ms > kMostCompileMs && !time.copies.empty()) {
    const auto ms_of = [](const auto& f) { return (f.second - 1) * large_function(f.first)->ms(); };
    const auto most = std::ranges::max_element(time.copies, {}, ms_of);
    if (most->second < 2) return;
    source.text = with_calls(source.text, most->first);
    time.ms -= ms_of(*most);
    time.copies.erase(most);
  }
}

}  // namespace

// Calls first: a loop that is not unrolled as a whole has what it is over in local memory.
void bound_repeated_code(KernelSource& source) {
  call_large_functions(source);
  unroll_as_fits(source);
}

}  // namespace fusec
