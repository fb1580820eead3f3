#include "codegen/called_functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

namespace fusec {
namespace {

struct Function {
  std::string_view name;  // of floats; doubles' are without the f
  double ms;              // of a copy
  int operands = 1;
};

constexpr Function kFunctions[] = {
    {"sinf", 13},
    {"cosf", 13},
    {"tanf", 12},
    {"powf", 5.2, 2},
    {"fmodf", 6, 2},
    {"atan2f", 4, 2},
    {"asinhf", 4},
    {"acoshf", 4.2},
    {"atanhf", 3.7},
    {"log2f", 2.4},
    {"log10f", 2.4},
    {"logf", 2.1},
    {"log1pf", 1.9},
    {"expm1f", 2.3},
    {"erff", 2.3},
    {"tanhf", 1.3},
    {"sinhf", 1.9},
    {"coshf", 1.3},
    {"asinf", 1.9},
    {"acosf", 1.9},
    {"atanf", 1.9},
    {"expf", 0.9},
    {"float_floor_mod", 7, 2},
};
constexpr double kAnyKernel = 50, kOperator = 0.06, kMost = 300;

// The prelude's that are much code wherever they are called; products, with what stands around them.
struct OfPrelude {
  std::string_view name;
  double ms;
};
constexpr OfPrelude kOfPrelude[] = {{"interleaved_reduce<", 30}, {"reduce_pieces<", 30},  {"block_reduce<", 8},
                                    {"warp_reduce(", 3},         {"multiply_lanes(", 35}, {"multiply_few_", 40}};

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '@';
}

// What a call in the text names: of doubles, too.
struct Called {
  const Function* function = nullptr;
  bool is_double = false;
};

Called function_of(std::string_view word) {
  for (const Function& f : kFunctions) {
    if (word == f.name) return {&f, false};
    if (f.name.ends_with('f') && word == f.name.substr(0, f.name.size() - 1)) return {&f, true};
  }
  return {};
}

// Calls `visit(first, last)` for each word of the text with a parenthesis behind it.
template <typename Visit>
void for_each_call(std::string_view text, const Visit& visit) {
  for (std::size_t at = text.find('('); at != std::string_view::npos; at = text.find('(', at + 1)) {
    std::size_t first = at;
    while (first > 0 && is_word(text[first - 1])) --first;
    if (first < at) visit(first, at);
  }
}

bool calls_any(std::string_view text) {
  bool any = false;
  for_each_call(text, [&](std::size_t first, std::size_t last) {
    any = any || function_of(text.substr(first, last - first)).function != nullptr;
  });
  return any;
}

// "8 * 4", "8"; nothing of what is no product of numbers.
std::optional<double> number_of(std::string_view text) {
  double product = 1;
  while (true) {
    while (text.starts_with(' ')) text.remove_prefix(1);
    int factor = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), factor);
    if (error != std::errc()) return std::nullopt;
    product *= factor;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    while (text.starts_with(' ')) text.remove_prefix(1);
    if (text.empty()) return product;
    if (!text.starts_with('*')) return std::nullopt;
    text.remove_prefix(1);
  }
}

// Turns of `for (int i = 0; i < 8; ++i)` or `i += 2`, where numbers tell.
std::optional<double> turns_of(std::string_view line) {
  const std::size_t assign = line.find(" = "), first = line.find(';');
  const std::size_t second = first == std::string_view::npos ? first : line.find(';', first + 1);
  const std::size_t less = line.find(" < ", first);
  if (assign > first || second == std::string_view::npos || less > second) return std::nullopt;
  const auto from = number_of(line.substr(assign + 3, first - assign - 3));
  const auto to = number_of(line.substr(less + 3, second - less - 3));
  const std::size_t step = line.find("+= ", second);
  std::optional<double> by = 1;
  if (step != std::string_view::npos) by = number_of(line.substr(step + 3, line.find(')', step) - step - 3));
  if (!from || !to || !by || *by == 0) return std::nullopt;
  return std::max(0.0, (*to - *from) / *by);
}

// Operators of a text and copies of functions, as loops are unrolled, and milliseconds of the prelude's.
struct Code {
  double operators = 0, of_prelude = 0;
  std::map<std::string, double, std::less<>> copies;

  double ms() const {
    double sum = kAnyKernel + kOperator * operators + of_prelude;
    for (const auto& [name, times] : copies) sum += times * ms_of(name);
    return sum;
  }
  static double ms_of(std::string_view name) {
    const Called called = function_of(name);
    return called.function->ms * (called.is_double ? 2 : 1);
  }
};

Code code_of_text(std::string_view text) {
  constexpr std::string_view kOperators = "-+*/%<>=?&|^[(", kUnroll = "#pragma unroll";
  Code code;
  std::vector<double> times = {1};
  std::optional<double> unrolled;  // by the line before; 0: as a whole
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (const std::size_t behind = line.find("//"); behind != std::string_view::npos) line = line.substr(0, behind);
    if (const std::size_t at = line.find(kUnroll); at != std::string_view::npos) {
      unrolled = number_of(line.substr(at + kUnroll.size())).value_or(0);
      continue;
    }
    double here = times.back();
    if (unrolled && line.find("for (") != std::string_view::npos) {
      const std::optional<double> turns = turns_of(line);
      here *= *unrolled == 0 ? turns.value_or(1) : std::min(*unrolled, turns.value_or(*unrolled));
    }
    unrolled.reset();
    for (const OfPrelude& called : kOfPrelude)
      if (line.find(called.name) != std::string_view::npos) code.of_prelude += called.ms;
    for_each_call(line, [&](std::size_t first, std::size_t last) {
      const std::string_view word = line.substr(first, last - first);
      if (function_of(word).function == nullptr) return;
      const auto at = code.copies.find(word);
      (at == code.copies.end() ? code.copies[std::string(word)] : at->second) += here;
    });
    for (const char c : line) {
      if (c == '{') times.push_back(here);
      if (c == '}' && times.size() > 1) times.pop_back();
      if (kOperators.find(c) != std::string_view::npos) code.operators += here;
    }
  }
  return code;
}

std::string with_calls(const std::string& text, std::string_view name) {
  std::string result;
  std::size_t copied = 0;
  for_each_call(text, [&](std::size_t first, std::size_t last) {
    if (std::string_view(text).substr(first, last - first) != name) return;
    result += text.substr(copied, first - copied) + "@KERNEL@_" + std::string(name);
    copied = last;
  });
  const Called called = function_of(name);
  const bool either = !called.is_double && !name.ends_with('f');  // the prelude's, of floats and doubles
  const std::string_view type = either ? "T" : called.is_double ? "double" : "float";
  const bool two = called.function->operands == 2;
  return fmt::format("{0}static __device__ __noinline__ {1} @KERNEL@_{2}({1} a{3}) {{ return {2}(a{4}); }}\n",
                     either ? "template <typename T>\n" : "", type, name, two ? fmt::format(", {} b", type) : "",
                     two ? ", b" : "") +
         result + text.substr(copied);
}

}  // namespace

void call_large_functions(KernelSource& source) {
  // Warpgroups have registers by number and products on the way: no call stands among them.
  if (source.names_registers || source.schedule.find("wgmma") != std::string::npos) return;
  if (!calls_any(source.text)) return;
  Code code = code_of_text(source.text);
  while (code.ms() > kMost && !code.copies.empty()) {
    const auto most =
        std::ranges::max_element(code.copies, {}, [](const auto& f) { return f.second * Code::ms_of(f.first); });
    if (most->second < 2) return;
    source.text = with_calls(source.text, most->first);
    code.copies.erase(most);
  }
}

}  // namespace fusec
