// st.async and red.async: a store to, or an atomic update of, the shared memory of a block of the cluster, which
// completes bytes of an mbarrier in the same block.
//
// The access happens at its issue. Like the bytes of a bulk copy it counts as written by "an asynchronous copy", so a
// thread that reads it without waiting for the mbarrier is a finding.
#include <array>

#include "runtime/emulator/access.h"
#include "runtime/emulator/decode.h"
#include "runtime/emulator/lanes.h"
#include "runtime/emulator/mbarrier.h"
#include "runtime/emulator/reduce_value.h"

namespace fusec::emulator {
namespace {

constexpr std::uint16_t kStores = 0xffff;  // Instruction::mode of st.async; else a ReduceOp

std::uint64_t shared_address(const Instruction& in, std::uint64_t address) {
  return in.space == Space::kGeneric ? address - kSharedWindow : address;
}

void write(Warp& warp, const Instruction& in, int lane, std::uint64_t target) {
  const Operand* values = &warp.program->lists[in.list];
  const auto size = static_cast<std::uint32_t>(bytes(in.type));
  if (in.mode == kStores) {
    std::array<std::byte, 32> data{};
    for (std::uint32_t i = 0; i < in.count; ++i) {
      const std::uint64_t value = load_raw(warp, values[i].slot, values[i].width, lane);
      std::memcpy(&data[i * size], &value, size);
    }
    const Request request{.access = Access::kWrite, .space = Space::kShared, .bytes = in.bytes, .async = true};
    resolve_shared(warp, lane, target, request, data.data());
    return;
  }
  const Request request{
      .access = Access::kAtomic, .space = Space::kShared, .bytes = size, .strong = true, .async = true};
  std::byte* host = resolve_shared(warp, lane, target, request, nullptr);
  if (host == nullptr) return;
  reduce_value(host, static_cast<ReduceOp>(in.mode), in.type, load_raw(warp, values[0].slot, values[0].width, lane), 0,
               warp.block->changed);
}

void store_async(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  Addresses addresses;
  gather_addresses(warp, in, addresses);
  // Its slot field holds the offset of the mbarrier's address.
  const Operand& offset = warp.program->lists[in.list + in.count];
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    const std::uint64_t target = shared_address(in, addresses[lane]);
    const std::uint64_t barrier_at =
        shared_address(in, load_raw(warp, in.b, in.b_width, lane) +
                               static_cast<std::uint64_t>(static_cast<std::int32_t>(offset.slot)));
    if (block_of_shared(warp, target) != block_of_shared(warp, barrier_at)) {
      report(warp, lane, FindingKind::kOutOfBounds, "the mbarrier lies in another block than what is stored", target);
      continue;
    }
    write(warp, in, lane, target);
    Block* home = nullptr;
    MBarrier* barrier = find_mbarrier(warp, lane, barrier_at, home);
    if (barrier != nullptr) complete_bytes(*home, *barrier, in.bytes);
  }
}

bool take_reduce_operation(Decoder& decoder) {
  constexpr std::pair<std::string_view, ReduceOp> kOps[] = {
      {"add", ReduceOp::kAdd}, {"min", ReduceOp::kMin}, {"max", ReduceOp::kMax}, {"inc", ReduceOp::kInc},
      {"dec", ReduceOp::kDec}, {"and", ReduceOp::kAnd}, {"or", ReduceOp::kOr},   {"xor", ReduceOp::kXor}};
  for (const auto& [word, op] : kOps) {
    if (!decoder.suffixes.take(word)) continue;
    decoder.out.mode = static_cast<std::uint16_t>(op);
    return true;
  }
  return false;
}

// Whether the ISA has this red.async: 32-bit integers, and 64-bit additions.
bool reduces(ReduceOp op, Type type) {
  switch (op) {
    case ReduceOp::kInc:
    case ReduceOp::kDec:
      return type == Type::kU32;
    case ReduceOp::kMin:
    case ReduceOp::kMax:
      return type == Type::kU32 || type == Type::kS32;
    case ReduceOp::kAdd:
      return type == Type::kU32 || type == Type::kS32 || type == Type::kU64;
    default:
      return type == Type::kB32;
  }
}

}  // namespace

bool decode_store_async(Decoder& decoder) {
  Suffixes& suffixes = decoder.suffixes;
  const bool stores = decoder.base() == "st";
  if ((!stores && decoder.base() != "red") || !suffixes.take("async")) return false;
  Instruction& out = decoder.out;
  for (std::string_view word : {"weak", "relaxed", "cluster"}) suffixes.take(word);
  if (!suffixes.take("mbarrier::complete_tx::bytes")) decoder.unknown();
  out.space = suffixes.take("shared::cluster") ? Space::kSharedCluster : Space::kGeneric;
  out.mode = kStores;
  std::uint16_t elements = 1;
  if (stores) {
    for (const auto& [word, count] : {std::pair{"v2", std::uint16_t{2}}, {"v4", std::uint16_t{4}}}) {
      if (suffixes.take(word)) elements = count;
    }
  } else if (!take_reduce_operation(decoder)) {
    decoder.unknown();
  }
  out.type = suffixes.take_type();
  const int size = bytes(out.type);
  if (stores ? size != 4 && size != 8 : !reduces(static_cast<ReduceOp>(out.mode), out.type)) decoder.unknown();
  decoder.expect_operands(3, 3);
  // Decode the mbarrier first: address() fills out.a, which then holds the target.
  const Space space = out.space;
  decoder.address(decoder.operand(2), space);
  out.b = out.a;
  out.b_width = out.a_width;
  const auto offset = static_cast<Slot>(out.immediate);
  decoder.address(decoder.operand(0), space);
  const PtxOperand& value = decoder.operand(1);
  const bool vector = value.kind == PtxOperand::Kind::kVector;
  if (vector != (elements > 1) || (vector && value.parts.size() != elements))
    decoder.fail("the operand does not match the vector width");
  std::vector<Slot> slots;
  for (std::size_t i = 0; i < elements; ++i) slots.push_back(decoder.source(vector ? value.parts[i] : value, out.type));
  decoder.begin_list();
  for (Slot slot : slots) decoder.add_to_list(slot, size);
  decoder.add_to_list(offset, 0);
  out.count = elements;
  out.bytes = static_cast<std::uint16_t>(size * elements);
  out.kind = stores ? InstructionClass::kLoadStore : InstructionClass::kAtomic;
  out.handler = store_async;
  return true;
}

}  // namespace fusec::emulator
