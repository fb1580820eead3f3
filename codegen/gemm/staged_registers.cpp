#include "codegen/gemm/staged_registers.h"

#include <fmt/format.h>

#include <cstddef>

#include "codegen/expr/ptx_statement.h"

namespace fusec {
namespace {

// Byte offsets in the layout of the prelude's staged_place: to the eighth row below, and to the next group of eight
// columns.
int lower(const StagedRegisters& staged) {
  return swaps_n8_tiles(staged.n8_tiles, staged.halves) ? 4 * 8 * 16 : 4 * 8 * (8 * staged.n8_tiles + 8);
}
int later(const StagedRegisters& staged) {
  return staged.halves ? 16 : 32;
}

void stage_one(const StagedRegisters& staged, int part, KernelWriter& writer) {
  PtxStatement statement{.operands = {fmt::format("\"r\"({})", staged.to)}, .writes_memory = true};
  const bool swapped = swaps_n8_tiles(staged.n8_tiles, staged.halves);
  if (swapped) statement.operands.push_back(fmt::format("\"r\"({})", staged.second));
  for (std::size_t s = 0; s < staged.first_registers.size(); ++s)
    for (int n8_tile = 0; n8_tile < staged.n8_tiles; ++n8_tile)
      for (int row = 0; row < 2; ++row) {
        const int number = staged.first_registers[s] + 4 * (part * staged.n8_tiles + n8_tile) + 2 * row;
        const int at =
            4 * staged.distance * static_cast<int>(s) + (swapped ? 0 : n8_tile * later(staged)) + row * lower(staged);
        statement.instructions.push_back(fmt::format("st.shared.v2.{0} [%{1}+{2}], {{{3}{4}, {3}{5}}}",
                                                     staged.integers ? "s32" : "f32", swapped ? n8_tile : 0, at,
                                                     staged.name, number, number + 1));
      }
  write_statement(statement, writer);
}

void stage_some(const StagedRegisters& staged, int first, int parts, const std::string& part, KernelWriter& writer) {
  if (parts == 1) return stage_one(staged, first, writer);
  const int half = parts / 2;
  writer.open(fmt::format("if ({} < {})", part, first + half));
  stage_some(staged, first, half, part, writer);
  writer.close("} else {");
  writer.reopen();
  stage_some(staged, first + half, parts - half, part, writer);
  writer.close();
}

}  // namespace

void stage_registers(const StagedRegisters& staged, const std::string& part, KernelWriter& writer) {
  stage_some(staged, 0, staged.parts, part, writer);
}

}  // namespace fusec
