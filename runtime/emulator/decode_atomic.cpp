// atom and red: every operation on every type that has one, in global and shared memory.
#include "runtime/emulator/access.h"
#include "runtime/emulator/decode.h"
#include "runtime/emulator/lanes.h"
#include "runtime/emulator/reduce_value.h"
#include "runtime/emulator/release_acquire.h"

namespace fusec::emulator {
namespace {

constexpr std::string_view kOpNames[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas"};

// The instruction's list holds the results (if any), then operand b of each element, then c.
void atomic(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  Addresses addresses;
  gather_addresses(warp, in, addresses);
  Hosts hosts = {};
  if (in.releases) fence_memory(warp, in.beyond_block);
  resolve(warp, {.access = Access::kAtomic, .space = in.space, .bytes = in.bytes, .strong = true}, lanes, addresses,
          hosts);
  if (in.acquires) fence_memory(warp, in.beyond_block);
  const auto op = static_cast<ReduceOp>(in.mode);
  const std::uint32_t size = static_cast<std::uint32_t>(bytes(in.type)), elements = in.bytes / size;
  const Operand* list = &warp.program->lists[in.list];
  const Operand* operands = in.option ? list + elements : list;
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    for (std::uint32_t i = 0; i < elements; ++i) {
      const std::uint64_t b = load_raw(warp, operands[i].slot, operands[i].width, lane);
      const std::uint64_t c =
          op == ReduceOp::kCas ? load_raw(warp, operands[elements].slot, operands[elements].width, lane) : 0;
      const std::uint64_t old =
          hosts[lane] == nullptr ? 0 : reduce_value(hosts[lane] + i * size, op, in.type, b, c, warp.block->changed);
      if (in.option) store_raw(warp, list[i].slot, list[i].width, lane, old);
    }
  }
}

bool has_operation(ReduceOp op, Type type) {
  const bool half = type == Type::kF16 || type == Type::kBF16 || type == Type::kF16x2 || type == Type::kBF16x2;
  if (half || type == Type::kF32 || type == Type::kF64)
    return op == ReduceOp::kAdd || op == ReduceOp::kMin || op == ReduceOp::kMax || op == ReduceOp::kExch;
  if (type == Type::kB16) return op == ReduceOp::kCas || op == ReduceOp::kExch;
  return is_integer(type) && (bits(type) == 32 || bits(type) == 64);
}

std::optional<Space> take_atomic_space(Suffixes& suffixes) {
  if (suffixes.take("global")) return Space::kGlobal;
  if (suffixes.take("shared") || suffixes.take("shared::cta")) return Space::kShared;
  if (suffixes.take("shared::cluster")) return Space::kSharedCluster;
  return std::nullopt;
}

}  // namespace

bool decode_atomic(Decoder& decoder) {
  const bool returns = decoder.base() == "atom";
  if (!returns && decoder.base() != "red") return false;
  Suffixes& suffixes = decoder.suffixes;
  if (suffixes.has("async")) return false;
  Instruction& out = decoder.out;
  out.kind = InstructionClass::kAtomic;
  out.beyond_block = !suffixes.has("cta");
  const bool both = suffixes.take("acq_rel");
  out.acquires = suffixes.take("acquire") || both;
  out.releases = suffixes.take("release") || both;
  for (std::string_view word : {"relaxed", "cta", "cluster", "gpu", "sys", "noftz"}) suffixes.take(word);
  const bool hinted = suffixes.take("L2::cache_hint");
  out.space = take_atomic_space(suffixes).value_or(Space::kGeneric);
  std::uint32_t elements = 1;
  for (const auto& [word, count] : {std::pair{"v2", 2u}, {"v4", 4u}, {"v8", 8u}}) {
    if (suffixes.take(word)) elements = count;
  }
  bool found = false;
  for (std::uint16_t i = 0; i < std::size(kOpNames); ++i) {
    if (!suffixes.take(kOpNames[i])) continue;
    out.mode = i;
    found = true;
    break;
  }
  out.type = suffixes.take_type();
  const auto op = static_cast<ReduceOp>(out.mode);
  if (!found || !has_operation(op, out.type)) decoder.unknown();
  const std::size_t wanted = (returns ? 1u : 0u) + 2 + (op == ReduceOp::kCas ? 1 : 0) + (hinted ? 1 : 0);
  decoder.expect_operands(wanted, wanted);
  std::size_t next = returns ? 1 : 0;
  out.space = decoder.address(decoder.operand(next++), out.space);
  const auto element = [&](const PtxOperand& operand, std::uint32_t i) -> const PtxOperand& {
    if (elements == 1) return operand;
    if (operand.kind != PtxOperand::Kind::kVector || operand.parts.size() != elements)
      decoder.fail("the operand does not match the vector width");
    return operand.parts[i];
  };
  const int size = bytes(out.type);
  out.option = returns && decoder.operand(0).kind != PtxOperand::Kind::kSink;
  std::vector<std::pair<Slot, int>> slots;
  for (std::uint32_t i = 0; out.option && i < elements; ++i) {
    slots.emplace_back(decoder.destination(element(decoder.operand(0), i), size), size);
  }
  for (std::uint32_t i = 0; i < elements; ++i)
    slots.emplace_back(decoder.source(element(decoder.operand(next), i), out.type), size);
  if (op == ReduceOp::kCas) slots.emplace_back(decoder.source(decoder.operand(next + 1), out.type), size);
  decoder.begin_list();
  for (const auto& [slot, width] : slots) decoder.add_to_list(slot, width);
  out.bytes = static_cast<std::uint16_t>(static_cast<std::uint32_t>(size) * elements);
  out.handler = atomic;
  return true;
}

}  // namespace fusec::emulator
