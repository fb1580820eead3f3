#include "codegen/schedules/wgmma_chain.h"

#include <fmt/format.h>

namespace fusec {
namespace {

// Lines of a list, with what stands before it in its first line.
void write_list(const std::vector<std::string>& items, const std::string& before, const std::string& after,
                KernelWriter& writer) {
  constexpr std::size_t kWidth = 100;
  std::string line = before;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string item = items[i] + (i + 1 < items.size() ? "," : after);
    if (!line.empty() && line.size() + item.size() > kWidth) {
      writer.line(line);
      line = "    ";
    }
    line += (line.empty() || line.back() == ' ' ? "" : " ") + item;
  }
  writer.line(line);
}

std::string numbered(int from, int count) {
  std::string list;
  for (int i = 0; i < count; ++i) list += fmt::format("{}%{}", i ? "," : "", from + i);
  return "{" + list + "}";
}

}  // namespace

void write_chain(const WgmmaChain& chain, KernelWriter& writer) {
  const int sums = 4 * chain.eights, left = chain.left_in_registers ? 4 : 1;
  const std::string type = chain.dtype == DType::kBFloat16 ? "bf16" : "f16";
  const std::string instruction =
      fmt::format("wgmma.mma_async.sync.aligned.m64n{0}k16.f32.{1}.{1} {2}", 8 * chain.eights, type, numbered(0, sums));
  std::vector<std::string> results, operands;
  for (int i = 0; i < sums; ++i)
    results.push_back(
        fmt::format("\"{}f\"({}[{}][{}])", chain.fresh ? "=" : "+", chain.sums, chain.first_eight + i / 4, i % 4));
  writer.line("asm volatile(");
  writer.line(fmt::format("    \"{{\\n.reg .pred none, add;\\n{}setp.eq.b32 add, 0, 0;\\n\"",
                          chain.fresh ? "setp.ne.b32 none, 0, 0;\\n" : ""));
  int next = sums;
  for (std::size_t s = 0; s < chain.steps.size(); ++s) {
    const WgmmaChain::Step& step = chain.steps[s];
    const std::string a = left == 4 ? numbered(next, 4) : fmt::format("%{}", next);
    writer.line(fmt::format("    \"{}, {}, %{}, {}, 1, 1, {}{};\\n\"", instruction, a, next + left,
                            chain.fresh && s == 0 ? "none" : "add", left == 4 ? "" : "0, ",
                            chain.right_across ? 1 : 0));
    for (int i = 0; i < left; ++i)
      operands.push_back(left == 4 ? fmt::format("\"r\"({}[{}])", step.left, i) : fmt::format("\"l\"({})", step.left));
    operands.push_back(fmt::format("\"l\"({})", step.right));
    next += left + 1;
  }
  writer.line("    \"}\"");
  write_list(results, "    :", "", writer);
  write_list(operands, "    :", ");", writer);
}

}  // namespace fusec
