#include "codegen/gemm/k_offset_table.h"

#include <fmt/format.h>

#include "codegen/access/direct.h"

namespace fusec {
namespace {

void find_outside(ExprEmitter& emitter, const ConvolutionTaps& group, const std::string& outside) {
  KernelWriter& writer = emitter.writer();
  const ExprPool& pool = emitter.kernel().pool;
  const std::string tap = writer.unique("tap");
  const std::string count = emitter.index_text().tight(simplify(point_count(pool, group.axes), pool.bounds()));
  writer.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", tap, count));
  const ExprEmitter::Mark mark = emitter.mark();
  if (!group.axes.empty()) bind_flat(emitter, group.axes, tap, "kluvw");
  std::string holds;
  for (const std::string& guard : emitter.emit(group.guards))
    holds += fmt::format("{}({})", holds.empty() ? "" : " && ", guard);
  writer.line(fmt::format("if (!({})) {} |= 1u << ({} + {});", holds, outside, group.first_bit, tap));
  emitter.rewind(mark);
  writer.close();
}

}  // namespace

void emit_k_offset_table(ExprEmitter& emitter, const KOffsetTable& table, const std::string& name, int threads) {
  KernelWriter& writer = emitter.writer();
  const ExprPool& pool = emitter.kernel().pool;
  writer.use("k_offset_entry");
  const std::string entry = writer.unique("k"), add = writer.unique("add"), taps = writer.unique("taps");
  writer.open_strided(entry, table.entries, threads);
  writer.line(fmt::format("int {} = 0;", add));
  writer.line(table.operand.has_position_table
                  ? fmt::format("unsigned {} = {} * {};", taps, table.operand.places, table.stride)
                  : fmt::format("unsigned {} = 1u << 31;", taps));
  const std::string element = table.each == 1 ? entry : writer.unique("element");
  if (table.each != 1) writer.line(fmt::format("const int {} = {} * {};", element, entry, table.each));
  writer.open(fmt::format("if ({} < {})", element, table.k));
  const ExprEmitter::Mark mark = emitter.mark();
  bind_flat(emitter, table.axes, element, "kluvw");
  writer.line(fmt::format("{} = {};", add, emitter.index(table.operand.k)));
  std::string bits;
  for (const ConvolutionTaps& group : table.operand.taps) {
    IndexExpr bit = 0;
    for (const std::uint32_t a : group.axes) bit = bit * pool.extent(a) + IndexExpr::axis(a);
    if (table.operand.has_position_table)
      bits = emitter.index(simplify(bit * table.stride, pool.bounds()));
    else
      bits += fmt::format("{}1u << ({})", bits.empty() ? "" : " | ",
                          emitter.index(simplify(bit + group.first_bit, pool.bounds())));
  }
  // Without taps the entry has a bit that only missing lines have set, so that nothing is read beyond the last line.
  writer.line(fmt::format("{} = {};", taps, bits.empty() ? "1u" : bits));
  emitter.rewind(mark);
  writer.close();
  writer.line(fmt::format("{}[{}] = {{{}, {}}};", name, entry, add, taps));
  writer.close();
}

void find_positions(ExprEmitter& emitter, const ConvolutionOperand& operand, const LinePositions& line) {
  KernelWriter& writer = emitter.writer();
  const ConvolutionTaps& taps = operand.taps[0];
  const std::string tap = writer.unique("tap");
  writer.open(fmt::format("for (int {0} = {1}; {0} < {2}; {0} += {3})", tap, line.first, operand.places, line.further));
  const ExprEmitter::Mark mark = emitter.mark();
  bind_flat(emitter, taps.axes, tap, "kluvw");
  std::string there = line.there;
  for (const std::string& guard : emitter.emit(taps.guards))
    there += fmt::format("{}({})", there.empty() ? "" : " && ", guard);
  const std::string place = emitter.index(operand.across);
  writer.line(fmt::format("{}[{} * {}] = {};", line.places, tap, line.stride,
                          there.empty() ? place : fmt::format("{} ? {} : -1", there, place)));
  emitter.rewind(mark);
  writer.close();
}

void find_taps_outside(ExprEmitter& emitter, const ConvolutionOperand& operand, const std::string& outside) {
  for (const ConvolutionTaps& group : operand.taps) find_outside(emitter, group, outside);
}

}  // namespace fusec
