#include "ir/reserved_words.h"

#include <algorithm>
#include <array>

#include "ir/library_symbols.h"
#include "ir/parse_dim.h"

namespace fusec {
namespace {

// C++ keywords, and names that emitted code, the toolkit's built-in declarations and system headers use.
// clang-format off
constexpr std::array<std::string_view, 222> kReserved = {
    "NULL", "abs", "acos", "acosf", "acosh", "acoshf", "alignas", "alignof", "and", "and_eq", "asin", "asinf", "asinh",
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
    "sqrtf", "static", "static_assert", "static_cast", "stderr", "stdin", "stdout", "strcmp", "strlen", "struct", "switch",
    "tan", "tanf", "tanh", "tanhf", "template", "this", "threadIdx", "thread_local", "throw", "time", "true",
    "trunc", "truncf", "try", "typedef", "typeid", "typename", "uchar4", "uint2", "uint4", "union", "unix",
    "unsigned", "using", "virtual", "void", "volatile", "warpSize", "wchar_t", "while", "xor", "xor_eq", "y0", "y1",
};
// clang-format on
static_assert(std::ranges::is_sorted(kReserved));

// Further names that a launcher cannot have: macros, types and functions of headers that emitted code includes.
constexpr std::array kOfHeaders = std::to_array<std::string_view>({
    "EOF",     "INT_MAX", "NDEBUG",   "alloca",   "atomicAdd", "co_await", "co_return", "co_yield",
    "int16_t", "int32_t", "int64_t",  "int8_t",   "isfinite",  "isinf",    "isnan",     "offsetof",
    "signbit", "std",     "uint16_t", "uint32_t", "uint64_t",  "uint8_t",
});
static_assert(std::ranges::is_sorted(kOfHeaders));

}  // namespace

bool is_reserved_word(std::string_view word) {
  return std::ranges::binary_search(kReserved, word);
}

std::string_view launcher_name_fault(std::string_view text) {
  if (!is_identifier(text)) return "no identifier";
  if (is_reserved_word(text) || std::ranges::binary_search(kOfHeaders, text)) return "a word of C++ or CUDA";
  if (text[0] == '_' || text.find("__") != std::string_view::npos) return "a name that compilers keep for themselves";
  for (const std::string_view claimed : {"cuda", "nccl", "cublas"})
    if (text.starts_with(claimed)) return "a name that CUDA's libraries keep for themselves";
  if (std::ranges::binary_search(library_symbols(), text)) return "a name that the C library or CUDA exports";
  return "";
}

}  // namespace fusec
