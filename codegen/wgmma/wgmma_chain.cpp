#include "codegen/wgmma/wgmma_chain.h"

#include <fmt/format.h>

#include "codegen/expr/ptx_statement.h"

namespace fusec {
namespace {

// A list of registers such as {%4,%5,%6}; `name` is their prefix.
std::string numbered(int from, int count, const std::string& name = "%") {
  std::string list;
  for (int i = 0; i < count; ++i) list += fmt::format("{}{}{}", i ? "," : "", name, from + i);
  return "{" + list + "}";
}

}  // namespace

void write_chain(const WgmmaChain& chain, KernelWriter& writer) {
  const int accumulators = 4 * chain.n8_tiles, left = chain.left_in_registers ? 4 : 1;
  const std::string type = chain.dtype == DType::kBFloat16 ? "bf16" : "f16";
  const std::string list =
      chain.named ? numbered(4 * chain.first_n8_tile, accumulators, chain.accumulators) : numbered(0, accumulators);
  const std::string instruction =
      fmt::format("wgmma.mma_async.sync.aligned.m64n{0}k16.f32.{1}.{1} {2}", 8 * chain.n8_tiles, type, list);
  PtxStatement statement{.instructions = {".reg .pred none, add", "setp.eq.b32 add, 0, 0"}, .scoped = true};
  if (chain.overwrites) statement.instructions.push_back("setp.ne.b32 none, 0, 0");
  for (int i = 0; i < accumulators && !chain.named; ++i)
    statement.results.push_back(fmt::format("\"{}f\"({}[{}][{}])", chain.overwrites ? "=" : "+", chain.accumulators,
                                            chain.first_n8_tile + i / 4, i % 4));
  int next = chain.named ? 0 : accumulators;
  for (std::size_t s = 0; s < chain.steps.size(); ++s) {
    const WgmmaChain::Step& step = chain.steps[s];
    statement.instructions.push_back(fmt::format(
        "{}, {}, %{}, {}, 1, 1, {}{}", instruction, left == 4 ? numbered(next, 4) : fmt::format("%{}", next),
        next + left, chain.overwrites && s == 0 ? "none" : "add", left == 4 ? "" : "0, ", chain.right_across ? 1 : 0));
    for (int i = 0; i < left; ++i)
      statement.operands.push_back(left == 4 ? fmt::format("\"r\"({}[{}])", step.left, i)
                                             : fmt::format("\"l\"({})", step.left));
    statement.operands.push_back(fmt::format("\"l\"({})", step.right));
    next += left + 1;
  }
  write_statement(statement, writer);
}

}  // namespace fusec
