// Control flow: bra brx ret exit trap, barriers, and hints to the hardware.
#include "runtime/emulator/decode.h"
#include "runtime/emulator/lanes.h"

namespace fusec::emulator {
namespace {

void yield(Warp& warp, const Instruction&, std::uint32_t) {
  warp.wants_yield = true;
}

bool decode_branch(Decoder& decoder) {
  const std::string_view base = decoder.base();
  Instruction& out = decoder.out;
  if (base == "bra") {
    decoder.suffixes.take("uni");
    decoder.expect_operands(1, 1);
    if (decoder.operand(0).kind != PtxOperand::Kind::kLabel) decoder.fail("a label is needed");
    out.control = Control::kBranch;
    out.target = decoder.operand(0).index;
    return true;
  }
  if (base != "brx") return false;
  if (!decoder.suffixes.take("idx")) decoder.unknown();
  decoder.suffixes.take("uni");
  decoder.expect_operands(2, 2);
  const PtxOperand& targets = decoder.operand(1);
  if (targets.kind != PtxOperand::Kind::kVector || targets.parts.size() > 0xffff)
    decoder.fail("a list of branch targets is needed");
  out.control = Control::kBranchIndexed;
  out.a = decoder.source(decoder.operand(0), Type::kU32);
  out.a_width = 4;
  decoder.begin_list();
  for (const PtxOperand& target : targets.parts) {
    if (target.kind != PtxOperand::Kind::kLabel) decoder.fail("a label is needed");
    decoder.add_to_list(target.index, 4);
  }
  return true;
}

// bar.sync a{, b}; bar.arrive a, b; bar.red.op.type d, a{, b}, p; barrier likewise, without .aligned in diverged code.
bool decode_barrier(Decoder& decoder) {
  const bool short_name = decoder.base() == "bar";
  if (!short_name && decoder.base() != "barrier") return false;
  Suffixes& suffixes = decoder.suffixes;
  Instruction& out = decoder.out;
  out.kind = InstructionClass::kBarrier;
  if (short_name && suffixes.has("warp")) return false;
  suffixes.take("cta");
  out.aligned = suffixes.take("aligned") || short_name;
  out.control = Control::kBarrier;
  if (suffixes.take("cluster")) {
    const bool arrive = suffixes.take("arrive");
    if (!arrive && !suffixes.take("wait")) decoder.unknown();
    for (std::string_view word : {"acquire", "release"}) suffixes.take(word);
    if (arrive) out.option = suffixes.take("relaxed");
    out.mode = static_cast<std::uint16_t>(arrive ? BarrierMode::kClusterArrive : BarrierMode::kClusterWait);
    decoder.expect_operands(0, 0);
    return true;
  }
  std::size_t first = 0, last = decoder.operands();
  if (suffixes.take("sync")) {
    out.mode = static_cast<std::uint16_t>(BarrierMode::kSync);
    decoder.expect_operands(1, 2);
  } else if (suffixes.take("arrive")) {
    out.mode = static_cast<std::uint16_t>(BarrierMode::kArrive);
    decoder.expect_operands(2, 2);
  } else if (suffixes.take("red")) {
    decoder.expect_operands(3, 4);
    const bool popc = suffixes.take("popc"), both = suffixes.take("and"), any = suffixes.take("or");
    if (!popc && !both && !any) decoder.unknown();
    suffixes.take_type();
    out.mode = static_cast<std::uint16_t>(popc   ? BarrierMode::kReducePopc
                                          : both ? BarrierMode::kReduceAnd
                                                 : BarrierMode::kReduceOr);
    out.d = popc ? decoder.destination(decoder.operand(0), 4) : decoder.predicate_destination(decoder.operand(0));
    out.c = decoder.predicate_source(decoder.operand(last - 1));
    first = 1;
    --last;
  } else {
    decoder.unknown();
  }
  out.a = decoder.source(decoder.operand(first), Type::kU32);
  if (first + 1 < last) out.b = decoder.source(decoder.operand(first + 1), Type::kU32);
  return true;
}

void change_registers(Warp& warp, const Instruction&, std::uint32_t) {
  ++warp.register_changes;
}

// setmaxnreg.inc|dec.sync.aligned.u32 count: has no effect on values.
void decode_register_count(Decoder& decoder) {
  Suffixes& suffixes = decoder.suffixes;
  if (!suffixes.take("inc") && !suffixes.take("dec")) decoder.unknown();
  for (std::string_view word : {"sync", "aligned", "u32"}) {
    if (!suffixes.take(word)) decoder.unknown();
  }
  decoder.expect_operands(1, 1);
  const PtxOperand& count = decoder.operand(0);
  if (count.kind != PtxOperand::Kind::kInteger || count.value < 24 || count.value > 256 || count.value % 8 != 0)
    decoder.fail("the number of registers must be a multiple of 8 from 24 to 256");
  decoder.out.handler = change_registers;
}

}  // namespace

bool decode_control(Decoder& decoder) {
  const std::string_view base = decoder.base();
  Instruction& out = decoder.out;
  out.kind = InstructionClass::kControl;
  if (decode_branch(decoder) || decode_barrier(decoder)) return true;
  if (base == "ret") {
    decoder.suffixes.take("uni");
    out.control = Control::kReturn;
  } else if (base == "exit") {
    out.control = Control::kExit;
  } else if (base == "trap") {
    out.control = Control::kTrap;
  } else if (base == "nanosleep") {
    decoder.suffixes.take("u32");
    out.handler = yield;
  } else if (base == "setmaxnreg") {
    decode_register_count(decoder);
  } else if (base == "griddepcontrol") {
    if (!decoder.suffixes.take("launch_dependents") && !decoder.suffixes.take("wait")) decoder.unknown();
    decoder.expect_operands(0, 0);
    out.handler = nothing;
  } else if (base == "pmevent" || base == "brkpt") {
    decoder.suffixes.take("mask");
    out.handler = nothing;
  } else {
    return false;
  }
  return true;
}

}  // namespace fusec::emulator
