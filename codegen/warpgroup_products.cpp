#include "codegen/warpgroup_products.h"

#include <fmt/format.h>

#include <string_view>

namespace fusec {
namespace {

struct Types {
  std::string_view name, of_sums_and_factors;
  int bits;
};
constexpr Types kTypes[] = {
    {"bf16", "f32.bf16.bf16", 16},
    {"fp16", "f32.f16.f16", 16},
    {"e4m3_e4m3", "f32.e4m3.e4m3", 8},
    {"e4m3_e5m2", "f32.e4m3.e5m2", 8},
    {"e5m2_e4m3", "f32.e5m2.e4m3", 8},
    {"e5m2_e5m2", "f32.e5m2.e5m2", 8},
    {"s8", "s32.s8.s8", 8},
};
constexpr int kColumns[] = {64, 128, 256};

// "%0,%1,%2", in quotes, line after line.
std::string register_names(int count) {
  constexpr int kLine = 32;
  std::string text;
  for (int first = 0; first < count; first += kLine) {
    text += "      \"";
    for (int i = first; i < first + kLine; ++i) text += fmt::format("%{}{}", i, i + 1 < count ? "," : "");
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

std::string text_of(const Types& types, int columns) {
  const bool turns = types.bits == 16, integers = types.of_sums_and_factors.starts_with("s32");
  const int depth = 256 / types.bits, sums = columns / 2, add = turns ? sums + 4 : sums + 2;
  std::string text = fmt::format("// d += a * b ({}: d = a * b) for 64 rows of a and {} columns of b, {} deep.{}\n",
                                 turns ? "!kAdd" : "!add", columns, depth,
                                 turns ? " Across: a factor's lines run across the depth." : "");
  if (turns) text += "template <bool kLeftAcross, bool kRightAcross, bool kAdd = true>\n";
  text += fmt::format(
      "__device__ __forceinline__ void multiply_warpgroup_{}({} (&d)[{}][4], unsigned long long a,\n"
      "                                                      unsigned long long b{}) {{\n",
      types.name, integers ? "int" : "float", columns / 8, turns ? "" : ", bool add");
  text += fmt::format(
      "  asm volatile(\n      \"{{\\n.reg .pred add;\\nsetp.ne.b32 add, %{}, 0;\\n\"\n"
      "      \"wgmma.mma_async.sync.aligned.m64n{}k{}.{} {{\"\n",
      add, columns, depth, types.of_sums_and_factors);
  text += register_names(sums) + "}, \"\n";
  const std::string scales = integers ? "" : ", 1, 1",
                    turned = turns ? fmt::format(", %{}, %{}", sums + 2, sums + 3) : "";
  text += fmt::format("      \"%{}, %{}, add{}{};\\n}}\"\n", sums, sums + 1, scales, turned);
  text += fmt::format("      : {}\n", register_operands(columns / 8, integers));
  text += turns ? "      : \"l\"(a), \"l\"(b), \"n\"(kLeftAcross ? 1 : 0), \"n\"(kRightAcross ? 1 : 0), \"n\"(kAdd ? 1 "
                  ": 0));\n}"
                : "      : \"l\"(a), \"l\"(b), \"r\"((int)add));\n}";
  return text;
}

}  // namespace

std::vector<WarpgroupProduct> warpgroup_products() {
  std::vector<WarpgroupProduct> products;
  for (const Types& types : kTypes)
    for (const int columns : kColumns)
      products.push_back(
          {.part = fmt::format("multiply_warpgroup_{}_{}", types.name, columns), .text = text_of(types, columns)});
  return products;
}

}  // namespace fusec
