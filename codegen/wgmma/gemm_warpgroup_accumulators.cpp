// Declares the accumulators of warpgroups. Accumulators that are only added to and stored are PTX registers by name,
// which the prelude's Registers stands for. Others are C++ arrays.
//
//   plain accumulators                           const Registers<0, 64> sum{};
//   partial sums, scales, zero points, split-K   float sum[16][4], and an array that wgmma adds a part of K to
//
// NVRTC takes 1.4 to 1.5 times as long for arrays of 128 accumulators a lane: they are operands of each wgmma and of
// the loops around it. docs/design/accumulators.md has the figures.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/prelude/warpgroup_multiplies.h"
#include "codegen/wgmma/gemm_warpgroup_emitter.h"
#include "ir/type.h"

namespace fusec {

// True when wgmma accumulates parts of the loop in registers other than its accumulators.
bool WarpgroupEmitter::accumulates_in_parts(const Part& part, std::size_t loop) const {
  const WarpgroupLoop& form = part.form.loops[loop];
  return form.scaled() || form.has_partial_accumulators() ||
         (part.form.dtype == DType::kInt8 && part.form.float_accumulators);
}

bool WarpgroupEmitter::has_named_accumulators() const {
  return tiles_.split_k == 1 && std::ranges::all_of(parts_, [&](const auto& part) {
           bool alone =
               !part->form.takes_offsets() && part->form.float_accumulators == parts_[0]->form.float_accumulators;
           for (std::size_t i = 0; i < part->form.loops.size(); ++i) alone = alone && !accumulates_in_parts(*part, i);
           return alone;
         });
}

// Declares enough registers for the largest part, once, at a place that dominates all uses.
void WarpgroupEmitter::declare_registers() {
  if (!has_named_accumulators()) return;
  int most = 0;
  for (const auto& part : parts_) {
    int columns = 0;
    for (std::size_t i = 0; i < part->form.loops.size(); ++i)
      for (const Multiplication& m : multiplications(*part, i)) columns += columns_of(*part, m);
    most = std::max(most, columns * tiles_.row_blocks / 2);
  }
  const char* const type = parts_[0]->form.float_accumulators ? "f32" : "s32";
  writer_.line(
      fmt::format("asm volatile(\".reg .{} {}<{}>;\" :);  // accumulators", type, kAccumulatorRegisters, most));
}

std::vector<WarpgroupEmitter::AccumulatorRegisters> WarpgroupEmitter::declare_accumulators(const Part& part) {
  std::vector<AccumulatorRegisters> accumulators;
  const bool integers = part.form.dtype == DType::kInt8, named = has_named_accumulators();
  int registers = 0;
  const auto declare = [&](const char* preferred_name, bool integer, int columns) {
    const std::string name = writer_.unique(preferred_name);
    if (named)
      writer_.line(fmt::format("const Registers<{}, {}> {}{{}};", registers, columns / 2, name));
    else
      writer_.line(fmt::format("{} {}[{}][4] = {{}};", integer ? "int" : "float", name, columns / 8));
    return name;
  };
  for (std::size_t i = 0; i < part.form.loops.size(); ++i)
    for (const Multiplication& m : multiplications(part, i)) {
      AccumulatorRegisters& accumulator = accumulators.emplace_back();
      const int columns = columns_of(part, m) * tiles_.row_blocks;  // the row blocks' columns one after another
      accumulator.name = declare("sum", integers && !part.form.float_accumulators, columns);
      accumulator.accumulated = accumulates_in_parts(part, i) ? declare("part", integers, columns) : accumulator.name;
      accumulator.first = registers;
      registers += columns / 2;
      if (!named) writer_.line(fmt::format("hold({});", accumulator.accumulated));
      if (part.loops[i].left(part.contraction.loops[i].terms[m.first].left).operand->zero_point == kNoExpr) continue;
      accumulator.line_sums = writer_.unique("codes");
      writer_.line(fmt::format("int {} = 0;", accumulator.line_sums));
    }
  if (!named) return accumulators;
  writer_.use(fmt::format("clear_registers_{}", registers));
  writer_.line(fmt::format("clear(Registers<0, {}>{{}});", registers));
  return accumulators;
}

// The registers that wgmma adds to for one row block.
std::string WarpgroupEmitter::accumulators_of_block(const AccumulatorRegisters& accumulator, int columns,
                                                    int block) const {
  if (tiles_.row_blocks == 1) return accumulator.accumulated;
  if (has_named_accumulators())
    return fmt::format("Registers<{}, {}>{{}}", accumulator.first + block * columns / 2, columns / 2);
  return fmt::format("*(float (*)[{}][4])({} + {})", columns / 8, accumulator.accumulated, block * columns / 8);
}

std::vector<std::string> WarpgroupEmitter::accumulators_of_terms(const Part& part,
                                                                 const std::vector<AccumulatorRegisters>& accumulators,
                                                                 int block) {
  std::vector<std::string> names;
  const int n8_tiles = part.form.tiles.columns / 8;
  std::size_t next = 0;
  for (std::size_t i = 0; i < part.form.loops.size(); ++i)
    for (const Multiplication& m : multiplications(part, i)) {
      const AccumulatorRegisters& all = accumulators[next++];
      for (std::size_t t = 0; t < m.terms; ++t) {
        const std::size_t first = (static_cast<std::size_t>(block) * m.terms + t) * static_cast<std::size_t>(n8_tiles);
        std::string& name = names.emplace_back(all.name);
        if (m.terms > 1 || tiles_.row_blocks > 1) name = writer_.unique("sum");
        if (name != all.name && has_named_accumulators())
          writer_.line(fmt::format("const Registers<{}, {}> {}{{}};", all.first + 4 * static_cast<int>(first),
                                   4 * n8_tiles, name));
        else if (name != all.name)
          writer_.line(fmt::format("{0} (&{1})[{2}][4] = ({0} (&)[{2}][4]){3}[{4}];",
                                   part.form.float_accumulators ? "float" : "int", name, n8_tiles, all.name, first));
      }
    }
  return names;
}

}  // namespace fusec
