#include "codegen/identifiers.h"

#include <algorithm>
#include <array>

namespace fusec {
namespace {

// Keywords, and what emitted code, the toolkit's built-in declarations and system headers use.
// clang-format off
constexpr std::array<std::string_view, 220> kReserved = {
    "abs", "acos", "acosf", "acosh", "acoshf", "alignas", "alignof", "and", "and_eq", "asin", "asinf", "asinh",
    "asinhf", "asm", "assert", "atan", "atan2", "atan2f", "atanf", "atanh", "atanhf", "auto", "bf16", "bitand",
    "bitor", "blockDim", "blockIdx", "bool", "break", "case", "catch", "cbrt", "ceil", "ceilf", "char", "char4",
    "class", "clock", "clock_t", "compl", "concept", "const", "const_cast", "consteval", "constexpr", "constinit",
    "continue", "copysign", "copysignf", "cos", "cosf", "cosh", "coshf", "cudaError_t", "decltype", "default",
    "delete", "dim3", "do", "double", "double2", "dynamic_cast", "else", "enum", "environ", "erf", "erfc", "erff",
    "errno", "exp", "exp2", "exp2f", "expf", "explicit", "expm1", "expm1f", "export", "extern", "fabs", "fabsf",
    "false", "float", "float2", "float4", "floor", "floorf", "fma", "fmaf", "fmax", "fmaxf", "fmin", "fminf", "fmod",
    "fmodf", "for", "fp16", "free", "friend", "goto", "gridDim", "half", "i386", "if", "inline", "int", "int2",
    "int4", "isfinite", "isinf", "isnan", "j0", "j1", "jn", "labs", "ldexp", "lgamma", "linux", "log", "log10",
    "log10f", "log1p", "log1pf", "log2", "log2f", "logb", "logf", "long", "main", "major", "makedev", "malloc",
    "max", "memcpy", "memset", "min", "minor", "mutable", "namespace", "nan", "new", "noexcept", "norm", "not",
    "not_eq", "nullptr", "operator", "optarg", "or", "or_eq", "pow", "powf", "printf", "private", "protected",
    "public", "register", "reinterpret_cast", "remainder", "requires", "return", "rindex", "rint", "rintf", "round",
    "rsqrt", "rsqrtf", "short", "signed", "signgam", "sin", "sinf", "sinh", "sinhf", "size_t", "sizeof", "sqrt",
    "sqrtf", "static", "static_assert", "static_cast", "stderr", "stdin", "stdout", "strlen", "struct", "switch",
    "tan", "tanf", "tanh", "tanhf", "template", "this", "threadIdx", "thread_local", "throw", "time", "true",
    "trunc", "truncf", "try", "typedef", "typeid", "typename", "uchar4", "uint2", "uint4", "union", "unix",
    "unsigned", "using", "virtual", "void", "volatile", "warpSize", "wchar_t", "while", "xor", "xor_eq", "y0", "y1",
};
// clang-format on

bool reserved(std::string_view word) {
  return std::find(kReserved.begin(), kReserved.end(), word) != kReserved.end();
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

}  // namespace

std::string clean_identifier(std::string_view text, std::size_t longest) {
  std::string id;
  for (const char c : text) {
    if (id.size() >= longest) break;
    if (is_letter(c) || is_digit(c)) {
      if (id.empty() && is_digit(c)) id += 'x';
      id += c;
    } else if (!id.empty() && id.back() != '_') {
      id += '_';
    }
  }
  while (!id.empty() && id.back() == '_') id.pop_back();
  if (id.empty()) return "x";
  // Names all in capitals are what macros are called (INT_MAX).
  if (id.size() > 1 && std::none_of(id.begin(), id.end(), [](char c) { return c >= 'a' && c <= 'z'; }))
    for (char& c : id)
      if (is_letter(c)) c = static_cast<char>(c - 'A' + 'a');
  return reserved(id) ? id + "_v" : id;
}

std::string comment_text(std::string_view text, std::size_t longest) {
  std::string line;
  for (const char c : text) {
    if (line.size() >= longest) return line + "...";
    // Not "*/" nor "/*", no "??" of a trigraph, no backslash that joins lines.
    const bool printable = c >= ' ' && c <= '~' && c != '\\';
    const bool forbidden = !line.empty() && ((line.back() == '*' && c == '/') || (line.back() == '/' && c == '*') ||
                                             (line.back() == '?' && c == '?'));
    if (forbidden) line += ' ';
    line += printable ? c : '.';
  }
  return line;
}

std::string UniqueNames::take(std::string_view wish) {
  const std::string base = clean_identifier(wish);
  auto [it, fresh] = taken_.try_emplace(base, 1);
  if (fresh) return base;
  for (;;) {
    const std::string name = base + "_" + std::to_string(++it->second);
    if (taken_.try_emplace(name, 1).second) return name;
  }
}

}  // namespace fusec
