// mbarrier.init inval arrive arrive_drop expect_tx complete_tx test_wait try_wait pending_count, and
// cp.async.mbarrier.arrive.
#include <algorithm>
#include <bit>

#include "runtime/emulator/access.h"
#include "runtime/emulator/decode.h"
#include "runtime/emulator/lanes.h"
#include "runtime/emulator/mbarrier.h"

namespace fusec::emulator {
namespace {

constexpr std::uint32_t kMaxCount = (1u << 20) - 1;

enum class BarrierOp : std::uint16_t { kInit, kInval, kArrive, kDrop, kExpect, kComplete, kTest, kTry, kPending };

// Completes the phase if no arrivals and no bytes are missing.
void maybe_complete(Block& home, MBarrier& barrier) {
  if (barrier.pending != 0 || barrier.bytes != 0) return;
  for (std::size_t w = 0; w < home.warps.size(); ++w) {
    if ((barrier.arrived_warps >> w & 1) != 0) barrier.joined[w] = home.now;
  }
  barrier.released = barrier.joined;
  barrier.released_blocks = barrier.joined_blocks;
  barrier.pending = barrier.expected;
  barrier.arrived_warps = 0;
  ++barrier.phase;
  ++home.now;
}

// The state that arrive returns and test_wait takes: the phase and the pending arrivals.
std::uint64_t token(const MBarrier& barrier) {
  return barrier.phase << 20 | barrier.pending;
}

std::uint64_t barrier_address(const Instruction& in, const Addresses& addresses, int lane) {
  const std::uint64_t address = addresses[lane];
  return in.space == Space::kGeneric ? address - kSharedWindow : address;
}

void mark_object(Block& home, std::uint32_t offset, bool live) {
  for (std::uint32_t word = offset / 4; word < offset / 4 + 2; ++word) home.shadow[word].mbarrier = live;
}

void initialize(Warp& warp, const Instruction& in, int lane, std::uint64_t address) {
  const auto count = static_cast<std::uint32_t>(load_raw(warp, in.b, 4, lane));
  if (count == 0 || count > kMaxCount) {
    report(warp, lane, FindingKind::kBarrierDivergence, "an mbarrier's count must be 1 to 2^20 - 1", address);
    return;
  }
  const auto offset = static_cast<std::uint32_t>(address & ((1u << kRankShift) - 1));
  Block* const place = block_of_shared(warp, address);
  if (place != nullptr && place->mbarriers.contains(offset)) {
    mark_object(*place, offset, false);
    report(warp, lane, FindingKind::kBarrierDivergence, "initializes an mbarrier that has not been invalidated",
           address);
  }
  const std::uint64_t zeros = 0;
  const Request request{.access = Access::kWrite, .space = Space::kShared, .bytes = 8, .strong = true};
  if (resolve_shared(warp, lane, address, request, reinterpret_cast<const std::byte*>(&zeros)) == nullptr) return;
  Block& home = *block_of_shared(warp, address);
  const bool local = &home == warp.block;
  MBarrier barrier{.expected = count,
                   .pending = count,
                   .initialized = home.now++,
                   .initializer = local ? warp.number : home.column_of_rank(warp.block->rank)};
  barrier.joined.assign(home.columns(), 0);
  barrier.released = barrier.joined;
  home.mbarriers[offset] = std::move(barrier);
  mark_object(home, offset, true);
  home.changed = true;
}

void see(Block& block, std::size_t row, std::size_t other) {
  for (std::size_t x = 0; x < block.columns(); ++x)
    block.seen_at(row, x) = std::max(block.seen_at(row, x), block.seen_at(other, x));
}

void acquire(Warp& warp, const Block& home, const MBarrier& barrier) {
  if (&home != warp.block) return;
  for (std::size_t x = 0; x < home.columns(); ++x) {
    std::uint32_t& seen = warp.block->seen_at(warp.number, x);
    seen = std::max(seen, barrier.released[x]);
  }
  // This warp acquires what the arriving blocks have seen of every block's memory.
  const std::vector<std::unique_ptr<Block>>& blocks = warp.block->cluster->blocks;
  for (std::size_t rank = 0; rank < blocks.size(); ++rank) {
    if ((barrier.released_blocks >> rank & 1) == 0) continue;
    for (const std::unique_ptr<Block>& block : blocks) {
      const std::size_t row = block.get() == warp.block ? warp.number : block->row_of_rank(warp.block->rank);
      see(*block, row, block->row_of_rank(rank));
    }
  }
}

// A warp of another block of the cluster arrives. Its block's accesses to `home`, and the warp's accesses to its own
// block's memory, happen before what waiting threads do next.
void arrive_from_afar(Warp& warp, Block& home, MBarrier& barrier) {
  Block& block = *warp.block;
  block.cluster->synchronized = true;
  barrier.joined[home.column_of_rank(block.rank)] = home.now;
  barrier.joined_blocks = static_cast<std::uint16_t>(barrier.joined_blocks | 1u << block.rank);
  ++home.now;
  // A block's own row holds what its warps have released by arrivals in other blocks.
  const std::size_t row = block.row_of_rank(block.rank);
  see(block, row, warp.number);
  block.seen_at(row, warp.number) = block.now;
  ++block.now;
}

bool phase_over(const Instruction& in, const MBarrier& barrier, std::uint64_t state) {
  return in.option ? (barrier.phase & 1) != (state & 1) : barrier.phase != state >> 20;
}

// Executes the instruction for one lane; returns the result of a wait.
bool operate(Warp& warp, const Instruction& in, int lane, std::uint64_t address) {
  const auto op = static_cast<BarrierOp>(in.mode);
  if (op == BarrierOp::kInit) {
    initialize(warp, in, lane, address);
    return false;
  }
  Block* home = nullptr;
  MBarrier* barrier = find_mbarrier(warp, lane, address, home);
  if (barrier == nullptr) return true;  // reported already; do not wait for it
  const std::uint32_t count = in.b == kNoSlot ? 1 : static_cast<std::uint32_t>(load_raw(warp, in.b, 4, lane));
  switch (op) {
    case BarrierOp::kInval:
      home->mbarriers.erase(static_cast<std::uint32_t>(address & ((1u << kRankShift) - 1)));
      mark_object(*home, static_cast<std::uint32_t>(address & ((1u << kRankShift) - 1)), false);
      home->changed = true;
      break;
    case BarrierOp::kArrive:
    case BarrierOp::kDrop: {
      if (in.d != kNoSlot) store_raw(warp, in.d, 8, lane, token(*barrier));
      if (in.saturate) barrier->bytes += count;  // .expect_tx: the operand is a number of bytes
      if (op == BarrierOp::kDrop && barrier->expected > 0)
        barrier->expected -= std::min(barrier->expected, in.saturate ? 1u : count);
      arrive(warp, *home, *barrier, in.saturate ? 1 : count);
      break;
    }
    case BarrierOp::kExpect:
      expect_bytes(*home, *barrier, count);
      break;
    case BarrierOp::kComplete:
      complete_bytes(*home, *barrier, count);
      break;
    case BarrierOp::kTest:
    case BarrierOp::kTry: {
      const std::uint64_t state = load_raw(warp, in.c, in.c_width, lane);
      if (!phase_over(in, *barrier, state)) {
        const auto offset = static_cast<std::uint32_t>(address & ((1u << kRankShift) - 1));
        warp.failed_wait = {.home = home, .offset = offset, .pc = warp.pc};
        return false;
      }
      acquire(warp, *home, *barrier);
      return true;
    }
    default:
      break;
  }
  return false;
}

void mbarrier(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  Addresses addresses;
  gather_addresses(warp, in, addresses);
  std::uint32_t result = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    if (operate(warp, in, lane, barrier_address(in, addresses, lane))) result |= 1u << lane;
  }
  const auto op = static_cast<BarrierOp>(in.mode);
  if (op != BarrierOp::kTest && op != BarrierOp::kTry) return;
  store_predicate(warp, in.d, result, lanes);
  if ((result & lanes) != lanes)
    warp.wants_yield = true;
  else
    warp.failed_wait = {};
}

void pending_count(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) != 0) store_raw(warp, in.d, 4, lane, load_raw(warp, in.a, 8, lane) & kMaxCount);
  }
}

// cp.async.mbarrier.arrive: arrives after the lane's cp.async so far are complete, so this completes them at once.
// Without .noinc the pending count first rises by one.
void arrive_after_copies(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  complete_all_copies(warp, lanes);
  Addresses addresses;
  gather_addresses(warp, in, addresses);
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    Block* home = nullptr;
    MBarrier* barrier = find_mbarrier(warp, lane, barrier_address(in, addresses, lane), home);
    if (barrier == nullptr) continue;
    if (in.option) arrive(warp, *home, *barrier, 1);  // .noinc; otherwise pending rises and falls by one
  }
}

void take_order_and_space(Decoder& decoder) {
  Suffixes& suffixes = decoder.suffixes;
  for (std::string_view word : {"release", "acquire", "relaxed", "cta", "cluster"}) suffixes.take(word);
  decoder.out.space = Space::kGeneric;
  if (suffixes.take("shared") || suffixes.take("shared::cta")) decoder.out.space = Space::kShared;
  if (suffixes.take("shared::cluster")) decoder.out.space = Space::kSharedCluster;
}

BarrierOp take_barrier_operation(Decoder& decoder) {
  constexpr std::pair<std::string_view, BarrierOp> kOps[] = {
      {"init", BarrierOp::kInit},        {"inval", BarrierOp::kInval},          {"arrive", BarrierOp::kArrive},
      {"arrive_drop", BarrierOp::kDrop}, {"complete_tx", BarrierOp::kComplete}, {"test_wait", BarrierOp::kTest},
      {"try_wait", BarrierOp::kTry},     {"pending_count", BarrierOp::kPending}};
  for (const auto& [word, op] : kOps) {
    if (decoder.suffixes.take(word)) return op;
  }
  if (decoder.suffixes.take("expect_tx")) return BarrierOp::kExpect;
  decoder.unknown();
}

void decode_operands(Decoder& decoder, BarrierOp op) {
  Instruction& out = decoder.out;
  const std::size_t given = decoder.operands();
  const auto at = [&](std::size_t i) -> const PtxOperand& { return decoder.operand(i); };
  switch (op) {
    case BarrierOp::kInit:
    case BarrierOp::kExpect:
    case BarrierOp::kComplete:
      decoder.expect_operands(2, 2);
      out.space = decoder.address(at(0), out.space);
      out.b = decoder.source(at(1), Type::kB32);
      break;
    case BarrierOp::kInval:
      decoder.expect_operands(1, 1);
      out.space = decoder.address(at(0), out.space);
      break;
    case BarrierOp::kArrive:
    case BarrierOp::kDrop: {
      // The state may be left out for remote objects.
      const std::size_t first = at(0).kind == PtxOperand::Kind::kAddress ? 0 : 1;
      decoder.expect_operands(first + 1, first + 2);
      if (first == 1 && at(0).kind != PtxOperand::Kind::kSink) out.d = decoder.destination(at(0), 8);
      out.space = decoder.address(at(first), out.space);
      if (given == first + 2) out.b = decoder.source(at(first + 1), Type::kB32);
      break;
    }
    case BarrierOp::kTest:
    case BarrierOp::kTry:
      decoder.expect_operands(3, 4);
      out.d = decoder.predicate_destination(at(0));
      out.space = decoder.address(at(1), out.space);
      out.c = decoder.source(at(2), out.option ? Type::kB32 : Type::kB64);
      out.c_width = out.option ? 4 : 8;
      break;
    case BarrierOp::kPending:
      decoder.expect_operands(2, 2);
      out.d = decoder.destination(at(0), 4);
      out.a = decoder.source(at(1), Type::kB64);
      break;
  }
}

// Reports a use of an mbarrier that is not ordered after its initialization. Lanes of the initializing warp are
// ordered.
void check_initialization(Warp& warp, int lane, std::uint64_t address, const Block& home, const MBarrier& barrier) {
  const bool local = &home == warp.block;
  const std::size_t row = local ? warp.number : home.row_of_rank(warp.block->rank);
  const std::size_t own = local ? warp.number : home.column_of_rank(warp.block->rank);
  if (barrier.initializer == own || home.seen_at(row, barrier.initializer) >= barrier.initialized) return;
  if (!home.launch->options->check_races || reported_before(warp, lane, FindingKind::kSharedRace)) return;
  report(warp, lane, FindingKind::kSharedRace,
         "uses an mbarrier that another warp initializes, without a barrier between", address);
}

}  // namespace

MBarrier* find_mbarrier(Warp& warp, int lane, std::uint64_t address, Block*& home) {
  home = block_of_shared(warp, address);
  if (home != nullptr) {
    const auto found = home->mbarriers.find(static_cast<std::uint32_t>(address & ((1u << kRankShift) - 1)));
    if (found != home->mbarriers.end()) {
      check_initialization(warp, lane, address, *home, found->second);
      return &found->second;
    }
  }
  report(warp, lane, FindingKind::kUnwrittenRead, "uses an mbarrier that was not initialized", address);
  return nullptr;
}

void arrive(Warp& warp, Block& home, MBarrier& barrier, std::uint32_t count) {
  home.changed = true;
  if (&home == warp.block) {
    for (std::size_t x = 0; x < home.columns(); ++x)
      barrier.joined[x] = std::max(barrier.joined[x], home.seen_at(warp.number, x));
    barrier.arrived_warps |= 1u << warp.number;
  } else {
    arrive_from_afar(warp, home, barrier);
  }
  if (count > barrier.pending) {
    report(warp, 0, FindingKind::kBarrierDivergence, "more arrivals at an mbarrier than it expects");
    count = barrier.pending;
  }
  barrier.pending -= count;
  maybe_complete(home, barrier);
}

void complete_bytes(Block& home, MBarrier& barrier, std::uint64_t bytes) {
  home.changed = true;
  barrier.joined[home.warps.size()] = home.now;
  ++home.now;
  barrier.bytes -= static_cast<std::int64_t>(bytes);
  maybe_complete(home, barrier);
}

void expect_bytes(Block& home, MBarrier& barrier, std::uint64_t bytes) {
  home.changed = true;
  barrier.bytes += static_cast<std::int64_t>(bytes);
  maybe_complete(home, barrier);
}

bool decode_mbarrier(Decoder& decoder) {
  Suffixes& suffixes = decoder.suffixes;
  Instruction& out = decoder.out;
  if (decoder.base() == "cp" && suffixes.has("mbarrier")) {
    suffixes.take("async");
    suffixes.take("mbarrier");
    if (!suffixes.take("arrive")) decoder.unknown();
    out.option = suffixes.take("noinc");
    take_order_and_space(decoder);
    suffixes.take_type();
    decoder.expect_operands(1, 1);
    out.space = decoder.address(decoder.operand(0), out.space);
    out.kind = InstructionClass::kBarrier;
    out.handler = arrive_after_copies;
    return true;
  }
  if (decoder.base() != "mbarrier") return false;
  const BarrierOp op = take_barrier_operation(decoder);
  out.saturate = op != BarrierOp::kExpect && suffixes.take("expect_tx");
  suffixes.take("noComplete");
  out.option = suffixes.take("parity");
  take_order_and_space(decoder);
  suffixes.take_type();
  decode_operands(decoder, op);
  out.mode = static_cast<std::uint16_t>(op);
  out.kind = InstructionClass::kBarrier;
  out.handler = op == BarrierOp::kPending ? pending_count : mbarrier;
  return true;
}

}  // namespace fusec::emulator
