// Decodes cp.async.bulk and its tensor form in both directions, with reductions, groups and prefetches.
#include <algorithm>

#include "runtime/emulator/access.h"
#include "runtime/emulator/bulk_copy.h"
#include "runtime/emulator/bulk_store.h"
#include "runtime/emulator/decode.h"
#include "runtime/emulator/lanes.h"
#include "runtime/emulator/reduce_value.h"

namespace fusec::emulator {
namespace {

void commit_bulk_group(Warp& warp, const Instruction&, std::uint32_t lanes) {
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) != 0) ++warp.bulk_commits[static_cast<std::size_t>(lane)];
  }
}

// Waits for all groups except the `immediate` newest; with .read (option) only until their sources have been read.
void wait_bulk_group(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  end_bulk_stores(warp, lanes, static_cast<std::uint32_t>(in.immediate), in.option);
}

// The base of an address operand with its offset added, as one slot.
std::pair<Slot, int> address_slot(Decoder& decoder, const PtxOperand& operand, Space space) {
  const Instruction kept = decoder.out;
  decoder.address(operand, space);
  const Instruction found = decoder.out;
  decoder.out = kept;
  Instruction sum{.handler =
                      [](Warp& warp, const Instruction& in, std::uint32_t) {
                        Addresses addresses;
                        gather_addresses(warp, in, addresses);
                        for (int lane = 0; lane < kLanes; ++lane) store_raw(warp, in.d, 8, lane, addresses[lane]);
                      },
                  .d = decoder.scratch(8),
                  .a = found.a,
                  .immediate = found.immediate,
                  .a_width = found.a_width};
  decoder.emit(sum);
  return {sum.d, 8};
}

using Slots = std::vector<std::pair<Slot, int>>;

void take_reduction(Decoder& decoder, bool is_tensor) {
  constexpr std::pair<std::string_view, ReduceOp> kOps[] = {
      {"add", ReduceOp::kAdd}, {"min", ReduceOp::kMin}, {"max", ReduceOp::kMax}, {"inc", ReduceOp::kInc},
      {"dec", ReduceOp::kDec}, {"and", ReduceOp::kAnd}, {"or", ReduceOp::kOr},   {"xor", ReduceOp::kXor}};
  bool found = false;
  for (const auto& [word, op] : kOps) {
    if (!decoder.suffixes.take(word)) continue;
    decoder.out.reduction = static_cast<std::uint8_t>(op);
    found = true;
  }
  if (!found) decoder.unknown();
  if (is_tensor) {  // the map has the element type
    decoder.out.option = true;
    return;
  }
  decoder.suffixes.take("noftz");
  decoder.out.from = decoder.suffixes.take_type();
}

BulkDirection take_direction(Decoder& decoder) {
  Suffixes& suffixes = decoder.suffixes;
  const std::vector<std::string_view> words = suffixes.left();
  const auto position = [&](std::string_view word) {
    return std::find(words.begin(), words.end(), word) - words.begin();
  };
  const auto cluster = position("shared::cluster"), cta = position("shared::cta"), global = position("global");
  const auto end = static_cast<std::ptrdiff_t>(words.size());
  for (std::string_view word : {"shared::cluster", "shared::cta", "global"}) suffixes.take(word);
  if (global == end) return BulkDirection::kSharedToShared;
  return global < std::min(cluster, cta) ? BulkDirection::kToGlobal : BulkDirection::kToShared;
}

void decode_bulk_transfer(Decoder& decoder, bool reduces) {
  Suffixes& suffixes = decoder.suffixes;
  Instruction& out = decoder.out;
  std::uint16_t rank = 0;
  if (suffixes.take("tensor")) {
    constexpr std::string_view kRanks[] = {"1d", "2d", "3d", "4d", "5d"};
    for (std::uint16_t i = 0; i < 5; ++i) {
      if (suffixes.take(kRanks[i])) rank = static_cast<std::uint16_t>(i + 1);
    }
    if (rank == 0) decoder.unknown();
  }
  const BulkDirection direction = take_direction(decoder);
  suffixes.take("tile");
  suffixes.take("bulk_group");
  suffixes.take("mbarrier::complete_tx::bytes");
  const bool multicast = suffixes.take("multicast::cluster"), hinted = suffixes.take("L2::cache_hint");
  if (reduces) take_reduction(decoder, rank != 0);
  if (reduces && direction != BulkDirection::kToGlobal) decoder.fail("reductions into shared memory are not supported");
  const bool signals = direction != BulkDirection::kToGlobal;
  const std::size_t wanted = (rank != 0 ? 2u : 3u) + (signals ? 1 : 0) + (multicast ? 1 : 0) + (hinted ? 1 : 0);
  decoder.expect_operands(wanted, wanted);
  Slots slots(kCoordinates, {kNoSlot, 0});
  const PtxOperand &target = decoder.operand(0), &source = decoder.operand(1);
  const bool to_global = direction == BulkDirection::kToGlobal;
  slots[kTarget] = address_slot(decoder, target,
                                rank != 0 && to_global ? Space::kGeneric
                                : to_global            ? Space::kGlobal
                                                       : Space::kShared);
  slots[kSource] = address_slot(decoder, source,
                                rank != 0 && !to_global                 ? Space::kGeneric
                                : direction == BulkDirection::kToShared ? Space::kGlobal
                                                                        : Space::kShared);
  std::size_t next = 2;
  if (rank == 0) slots[kSize] = {decoder.source(decoder.operand(next++), Type::kB32), 4};
  if (signals) slots[kBarrier] = address_slot(decoder, decoder.operand(next++), Space::kShared);
  if (multicast) slots[kMask] = {decoder.source(decoder.operand(next++), Type::kB16), 2};
  if (rank != 0) {
    const PtxOperand& map = to_global ? target : source;
    if (map.parts.size() != 2 || map.parts[1].kind != PtxOperand::Kind::kVector || map.parts[1].parts.size() != rank) {
      decoder.fail("the coordinates do not match the tensor's rank");
    }
    for (const PtxOperand& coordinate : map.parts[1].parts)
      slots.emplace_back(decoder.source(coordinate, Type::kB32), 4);
  }
  decoder.begin_list();
  for (const auto& [slot, width] : slots) decoder.add_to_list(slot, width);
  out.mode = static_cast<std::uint16_t>(direction);
  out.bytes = rank;
  out.kind = InstructionClass::kLoadStore;
  out.handler = execute_bulk_copy;
  if (to_global) decoder.note_bulk_stores();
}

}  // namespace

bool decode_bulk(Decoder& decoder) {
  Suffixes& suffixes = decoder.suffixes;
  if (decoder.base() != "cp" || !suffixes.has("bulk")) return false;
  const bool reduces = suffixes.take("reduce");
  if (!suffixes.take("async") || !suffixes.take("bulk")) decoder.unknown();
  decoder.out.kind = InstructionClass::kBarrier;
  decoder.out.handler = nothing;
  if (suffixes.take("commit_group")) {
    decoder.out.handler = commit_bulk_group;
    return true;
  }
  if (suffixes.take("wait_group")) {
    decoder.out.option = suffixes.take("read");
    decoder.expect_operands(1, 1);
    if (decoder.operand(0).kind != PtxOperand::Kind::kInteger) decoder.fail("the number of groups must be a constant");
    decoder.out.immediate = static_cast<std::int64_t>(decoder.operand(0).value & 0xffffffffu);
    decoder.out.handler = wait_bulk_group;
    return true;
  }
  if (suffixes.take("prefetch")) {
    for (std::string_view word : {"tensor", "1d", "2d", "3d", "4d", "5d", "L2", "global", "tile", "L2::cache_hint"})
      suffixes.take(word);
    return true;
  }
  decode_bulk_transfer(decoder, reduces);
  return true;
}

}  // namespace fusec::emulator
