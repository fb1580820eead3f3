#include "codegen/prelude/warpgroup_multiplies.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>

namespace fusec {
namespace {

struct Types {
  std::string_view name, of_accumulators_and_operands;
  int bits;
};
constexpr Types kProductTypes[] = {
    {"bf16", "f32.bf16.bf16", 16},
    {"fp16", "f32.f16.f16", 16},
    {"e4m3_e4m3", "f32.e4m3.e4m3", 8},
    {"e4m3_e5m2", "f32.e4m3.e5m2", 8},
    {"e5m2_e4m3", "f32.e5m2.e4m3", 8},
    {"e5m2_e5m2", "f32.e5m2.e5m2", 8},
    {"s8", "s32.s8.s8", 8},
};
constexpr int kColumns[] = {64, 128, 192, 256};
constexpr int kMostAccumulatorRegisters = 128, kRegistersAtOnce = 32;  // per thread; first registers are multiples

// Register names "%0,%1,%2" in quoted lines, or with another prefix and first number.
std::string register_names(int count, std::string_view name = "%", int from = 0) {
  constexpr int kLine = 24;
  std::string text;
  for (int first = 0; first < count; first += kLine) {
    text += "      \"";
    for (int i = first; i < std::min(first + kLine, count); ++i)
      text += fmt::format("{}{}{}", name, from + i, i + 1 < count ? "," : "");
    text += first + kLine < count ? "\"\n" : "";
  }
  return text;
}

std::string register_operands(int eights, bool integers) {
  constexpr int kLine = 2;
  std::string text;
  for (int j = 0; j < eights; ++j) {
    if (j > 0) text += j % kLine == 0 ? ",\n        " : ", ";
    for (int i = 0; i < 4; ++i)
      text += fmt::format("{}\"+{}\"(d[{}][{}])", i > 0 ? ", " : "", integers ? 'r' : 'f', j, i);
  }
  return text;
}

// One asm statement with the MMAs of all K slices of a stage (32 bytes of K each), because compile time depends on the
// length of the register list. `first`: for named registers, which are always accumulated into.
std::string text_of(const Types& types, int columns, std::optional<int> first = std::nullopt) {
  constexpr int kSlices = 4;
  const bool transposes = types.bits == 16, integers = types.of_accumulators_and_operands.starts_with("s32");
  const int depth = 256 / types.bits, sums = first ? 0 : columns / 2, add = sums + 2 * kSlices;
  const int turned_at = first ? add : add + 1;
  std::string text =
      fmt::format("// {} with wgmma: M = 64, N = {}, K = {}. a, b: descriptors of tiles in shared memory.{}\n",
                  first ? "Named registers += a * b" : "d = a * b + (add ? d : 0)", columns, kSlices * depth,
                  transposes ? "\n// kLeftAcross, kRightAcross: elements per line of an MN-major operand, 0 if K-major."
                             : "");
  if (transposes) text += "template <int kLeftAcross, int kRightAcross>\n";
  text += fmt::format("__device__ __forceinline__ void multiply_warpgroup_{}(", types.name);
  text += first
              ? fmt::format("Registers<{}, {}>, unsigned long long a, unsigned long long b) {{\n", *first, columns / 2)
              : fmt::format(
                    "{} (&d)[{}][4], unsigned long long a,\n"
                    "                                                      unsigned long long b, bool add = "
                    "true) {{\n",
                    integers ? "int" : "float", columns / 8);
  if (transposes)
    text +=
        "  constexpr int kLeft = kLeftAcross ? 2 * kLeftAcross : 2, kRight = kRightAcross ? 2 * kRightAcross : 2;\n";
  text += first ? "  asm volatile(\n      \"{\\n.reg .pred add;\\nsetp.eq.b32 add, 0, 0;\\n\"\n"
                : fmt::format(
                      "  asm volatile(\n      \"{{\\n.reg .pred first, add;\\nsetp.ne.b32 first, %{}, "
                      "0;\\nsetp.eq.b32 add, 0, 0;\\n\"\n",
                      add);
  const std::string scales = integers ? "" : ", 1, 1";
  const std::string turned = transposes ? fmt::format(", %{}, %{}", turned_at, turned_at + 1) : "";
  std::string slices;
  for (int s = 0; s < kSlices; ++s) {
    text += fmt::format("      \"wgmma.mma_async.sync.aligned.m64n{}k{}.{} {{\"\n", columns, depth,
                        types.of_accumulators_and_operands);
    text += (first ? register_names(columns / 2, kAccumulatorRegisters, *first) : register_names(sums)) + "}, \"\n";
    text += fmt::format("      \"%{}, %{}, {}{}{};\\n{}\"\n", sums + 2 * s, sums + 2 * s + 1,
                        s == 0 && !first ? "first" : "add", scales, turned, s + 1 == kSlices ? "}" : "");
    slices += s == 0       ? "\"l\"(a), \"l\"(b)"
              : transposes ? fmt::format(", \"l\"(a + {0} * kLeft), \"l\"(b + {0} * kRight)", s)
                           : fmt::format(", \"l\"(a + {0}), \"l\"(b + {0})", 2 * s);
  }
  text += first ? fmt::format("      :\n      : {}", slices)
                : fmt::format("      : {}\n      : {},\n        \"r\"((int)add)",
                              register_operands(columns / 8, integers), slices);
  text += transposes ? ", \"n\"(kLeftAcross ? 1 : 0), \"n\"(kRightAcross ? 1 : 0));\n}" : ");\n}";
  return text;
}

std::string text_of_clear(int count) {
  constexpr int kLine = 6;
  std::string text = fmt::format("__device__ __forceinline__ void clear(Registers<0, {}>) {{\n  asm volatile(", count);
  for (int i = 0; i < count; ++i)
    text += fmt::format("{}mov.b32 {}{}, 0;{}", i % kLine == 0 ? "\n      \"" : " ", kAccumulatorRegisters, i,
                        i % kLine == kLine - 1 || i + 1 == count ? "\\n\"" : "");
  return text + "\n      :);\n}\n";
}

}  // namespace

std::string WarpgroupMultiply::text() const {
  if (cleared > 0) return text_of_clear(cleared);
  return text_of(kProductTypes[types], columns, first_register);
}

std::vector<WarpgroupMultiply> warpgroup_multiplies() {
  std::vector<WarpgroupMultiply> products;
  for (std::size_t types = 0; types < std::size(kProductTypes); ++types)
    for (const int columns : kColumns) {
      const std::string part = fmt::format("multiply_warpgroup_{}_{}", kProductTypes[types].name, columns);
      products.push_back({.part = part, .types = types, .columns = columns});
      for (int first = 0; first + columns / 2 <= kMostAccumulatorRegisters; first += kRegistersAtOnce)
        products.push_back({.part = fmt::format("{}_registers_{}", part, first),
                            .needs = {"accumulator_registers"},
                            .types = types,
                            .columns = columns,
                            .first_register = first});
    }
  for (int count = kRegistersAtOnce; count <= kMostAccumulatorRegisters; count += kRegistersAtOnce)
    products.push_back(
        {.part = fmt::format("clear_registers_{}", count), .needs = {"accumulator_registers"}, .cleared = count});
  return products;
}

std::vector<std::string> warpgroup_functions() {
  std::vector<std::string> names;
  for (const Types& types : kProductTypes) names.push_back(fmt::format("multiply_warpgroup_{}", types.name));
  return names;
}

}  // namespace fusec
