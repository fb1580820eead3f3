// cp.async and its groups. A copy reads global memory at its issue and writes shared memory when its lane waits for it.
// Until then the target bytes are pending, and an access to them is a finding. Races with earlier accesses are checked
// at the issue, since the copy may write from then on.
#include <algorithm>

#include "runtime/emulator/access.h"
#include "runtime/emulator/decode.h"
#include "runtime/emulator/lanes.h"

namespace fusec::emulator {
namespace {

void set_pending(Block& block, const AsyncCopy& copy, bool pending) {
  for (std::uint32_t at = copy.shared; at < copy.shared + copy.bytes; ++at) {
    const auto bit = static_cast<std::uint8_t>(1u << (at % 4));
    SharedWord& word = block.shadow[at / 4];
    word.pending = static_cast<std::uint8_t>(pending ? word.pending | bit : word.pending & ~bit);
  }
}

void complete_copy(Warp& warp, const AsyncCopy& copy) {
  Block& block = *warp.block;
  set_pending(block, copy, false);
  const Request request{
      .access = Access::kWrite, .space = Space::kShared, .bytes = copy.bytes, .copy = Request::Copy::kComplete};
  std::byte* host = resolve_shared(warp, static_cast<int>(copy.lane), copy.shared, request, copy.data.data());
  if (host != nullptr) std::memcpy(host, copy.data.data(), copy.bytes);
}

bool inside_shared(Warp& warp, int lane, std::uint64_t address, std::uint32_t bytes) {
  const Block& block = *warp.block;
  bool good = address + bytes <= block.shared.size();
  for (std::uint64_t at = address; good && at < address + bytes; at += 4) good = block.shadow[at / 4].allocated == 0xf;
  if (!good) report(warp, lane, FindingKind::kOutOfBounds, "cp.async outside the block's shared memory", address);
  return good;
}

// a: shared address, b: global address, c: bytes to read (the rest is zeros), e: predicate that ignores the source.
void copy_async(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  const std::uint32_t size = in.bytes;
  const std::int64_t source_offset = static_cast<std::int32_t>(warp.program->lists[in.list].slot);
  Addresses targets, sources;
  gather_addresses(warp, in, targets);
  std::uint32_t reading = lanes;
  std::uint32_t taken[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    taken[lane] = in.c == kNoSlot ? size : static_cast<std::uint32_t>(load_raw(warp, in.c, 4, lane));
    sources[lane] = load_raw(warp, in.b, in.b_width, lane) + static_cast<std::uint64_t>(source_offset);
    if ((lanes >> lane & 1) == 0) continue;
    if (in.e != kNoSlot && (load_predicate(warp, in.e) >> lane & 1) != 0) taken[lane] = 0;
    if (taken[lane] > size) {
      report(warp, lane, FindingKind::kOutOfBounds, "cp.async reads more than it copies");
      taken[lane] = size;
    }
    if (taken[lane] == 0) reading &= ~(1u << lane);
  }
  Hosts hosts = {};
  // The source must be aligned to the whole copy's size, although only `taken` bytes are read.
  for (std::uint32_t bytes = 1; bytes <= size && reading != 0; ++bytes) {
    std::uint32_t same = 0;
    for (int lane = 0; lane < kLanes; ++lane) {
      if ((reading >> lane & 1) != 0 && taken[lane] == bytes) same |= 1u << lane;
    }
    if (same != 0) resolve(warp, {.access = Access::kRead, .space = in.space, .bytes = bytes}, same, sources, hosts);
  }
  count_banks(warp, lanes, targets, size);
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    if (targets[lane] % size != 0 || (taken[lane] != 0 && sources[lane] % size != 0)) {
      report(warp, lane, FindingKind::kMisaligned, "cp.async at an address that is no multiple of its size",
             targets[lane]);
      continue;
    }
    if (!inside_shared(warp, lane, targets[lane], size)) continue;
    AsyncCopy copy{.lane = static_cast<std::uint32_t>(lane),
                   .group = warp.commits[static_cast<std::size_t>(lane)],
                   .shared = static_cast<std::uint32_t>(targets[lane]),
                   .bytes = size};
    if (taken[lane] != 0 && hosts[lane] != nullptr) std::memcpy(copy.data.data(), hosts[lane], taken[lane]);
    const Request issue{
        .access = Access::kWrite, .space = Space::kShared, .bytes = size, .copy = Request::Copy::kIssued};
    resolve_shared(warp, lane, targets[lane], issue, copy.data.data());
    set_pending(*warp.block, copy, true);
    warp.copies.push_back(copy);
    warp.block->changed = true;
  }
}

void commit_copy_group(Warp& warp, const Instruction&, std::uint32_t lanes) {
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) != 0) ++warp.commits[static_cast<std::size_t>(lane)];
  }
}

// Completes the copies of all groups except the `immediate` newest; wait_all (option) also uncommitted copies.
void wait_copy_group(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  std::vector<AsyncCopy> left;
  for (const AsyncCopy& copy : warp.copies) {
    const std::uint32_t commits = warp.commits[copy.lane];
    const bool waits = (lanes >> copy.lane & 1) != 0;
    if (waits && (in.option || copy.group + static_cast<std::uint64_t>(in.immediate) < commits))
      complete_copy(warp, copy);
    else
      left.push_back(copy);
  }
  warp.copies = std::move(left);
}

}  // namespace

void complete_all_copies(Warp& warp, std::uint32_t lanes) {
  wait_copy_group(warp, {.option = true}, lanes);
}

namespace {

void decode_async_copy(Decoder& decoder) {
  Suffixes& suffixes = decoder.suffixes;
  Instruction& out = decoder.out;
  for (std::string_view word : {"ca", "cg", "shared", "shared::cta", "global", "L2::64B", "L2::128B", "L2::256B"})
    suffixes.take(word);
  const bool hinted = suffixes.take("L2::cache_hint");
  decoder.expect_operands(3, hinted ? 5 : 4);
  const std::size_t given = decoder.operands() - (hinted ? 1 : 0);
  const PtxOperand& size = decoder.operand(2);
  if (size.kind != PtxOperand::Kind::kInteger || (size.value != 4 && size.value != 8 && size.value != 16))
    decoder.fail("the copy's size must be 4, 8 or 16");
  // Decode the source first: address() fills out.a, which then holds the target.
  decoder.address(decoder.operand(1), Space::kGlobal);
  out.b = out.a;
  out.b_width = out.a_width;
  const std::int64_t source_offset = out.immediate;
  decoder.address(decoder.operand(0), Space::kShared);
  if (given == 4) {
    if (decoder.is_predicate(decoder.operand(3)))
      out.e = decoder.predicate_source(decoder.operand(3));
    else
      out.c = decoder.source(decoder.operand(3), Type::kB32);
  }
  decoder.begin_list();
  decoder.add_to_list(static_cast<Slot>(source_offset), 0);
  out.bytes = static_cast<std::uint16_t>(size.value);
  out.space = Space::kGlobal;
  out.kind = InstructionClass::kLoadStore;
  out.handler = copy_async;
}

}  // namespace

bool decode_async(Decoder& decoder) {
  Suffixes& suffixes = decoder.suffixes;
  Instruction& out = decoder.out;
  if (decoder.base() != "cp" || !suffixes.take("async")) return false;
  if (suffixes.has("bulk") || suffixes.has("mbarrier")) return false;
  out.kind = InstructionClass::kBarrier;
  if (suffixes.take("commit_group")) {
    out.handler = commit_copy_group;
  } else if (suffixes.take("wait_group")) {
    decoder.expect_operands(1, 1);
    if (decoder.operand(0).kind != PtxOperand::Kind::kInteger) decoder.fail("the number of groups must be a constant");
    out.immediate = static_cast<std::int64_t>(decoder.operand(0).value & 0xffffffffu);
    out.handler = wait_copy_group;
  } else if (suffixes.take("wait_all")) {
    out.option = true;
    out.handler = wait_copy_group;
  } else {
    decode_async_copy(decoder);
  }
  return true;
}

}  // namespace fusec::emulator
