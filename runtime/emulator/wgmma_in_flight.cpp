#include "runtime/emulator/wgmma_in_flight.h"

#include <algorithm>
#include <bit>

#include "runtime/emulator/access.h"

namespace fusec::emulator {
namespace {

constexpr Slot kSlotsStep = 4;
constexpr std::size_t kMostGroups = 256;  // tracked groups; a kernel may never wait
constexpr std::uint32_t kSlotChunk = 16;

std::uint32_t& group_of(std::vector<std::uint32_t>& groups, Slot slot) {
  return groups[slot / kSlotsStep];
}

bool in_flight(const WgmmaInFlight& products, const std::vector<std::uint32_t>& groups, Slot slot) {
  if ((slot & kConstantBit) != 0 || slot / kSlotsStep >= groups.size()) return false;
  return groups[slot / kSlotsStep] > products.ended;
}

bool computed(const WgmmaInFlight& products, Slot slot) {
  return (slot & kConstantBit) == 0 && slot / kSlotsStep < products.computed.size() &&
         products.computed[slot / kSlotsStep] != 0;
}

std::uint64_t hash_of(const Warp& warp, const std::vector<Slot>& slots) {
  std::uint64_t hash = 0;
  for (const Slot slot : slots) {
    const std::byte* lanes = warp.source(slot);
    for (std::size_t at = 0; at < kLanes * 4; at += 8) {
      std::uint64_t word;
      std::memcpy(&word, lanes + at, 8);
      hash = (std::rotl(hash, 23) ^ word) * 0x9e3779b97f4a7c15u;
    }
  }
  return hash;
}

// Whether the instruction copies one whole register to another.
bool is_copy(const DataFlow& flow) {
  return flow.reads.size() == 1 && flow.writes.size() == 1 && (flow.reads[0].slot & kConstantBit) == 0;
}

void finding(Warp& warp, std::uint32_t lanes, std::string message) {
  report(warp, lanes == 0 ? 0 : std::countr_zero(lanes), FindingKind::kAsyncRead, std::move(message));
}

// Reports an access to registers of unfinished products once; clears the marks against further reports.
void touched(Warp& warp, std::uint32_t lanes, std::string message) {
  finding(warp, lanes, std::move(message));
  std::fill(warp.products.sums.begin(), warp.products.sums.end(), 0);
  std::fill(warp.products.factors.begin(), warp.products.factors.end(), 0);
}

std::size_t register_steps(const Warp& warp) {
  return warp.registers.size() / kSlotsStep + 1;
}

// Products may follow each other on the same accumulators, but registers that other instructions have written need a
// wgmma.fence before the product.
void check_fence(Warp& warp, Slot first, const Operand* factors) {
  WgmmaInFlight& products = warp.products;
  if (!products.fenced) {
    finding(warp, warp.live, "multiplies before any wgmma.fence: the registers that it uses may not be ready");
    products.fenced = true;
    return;
  }
  for (const WgmmaInFlight::Sums& sums : products.left) {
    if (sums.slots.front() != first || hash_of(warp, sums.slots) == sums.hash) continue;
    finding(warp, warp.live, "adds to sums that other instructions have written, without wgmma.fence between");
    return;
  }
  for (std::size_t i = 0; factors != nullptr && i < 4; ++i) {
    if (!computed(products, factors[i].slot)) continue;
    finding(warp, warp.live, "multiplies A that other instructions have written, without wgmma.fence between");
    return;
  }
}

// Records the reads of completed products again, at the wait: later writes must be ordered after it.
void read_again(Warp& warp, const WgmmaInFlight::Group& group) {
  const Request request{.access = Access::kRead, .space = Space::kShared, .bytes = kSlotChunk, .async = true};
  const int lane = std::countr_zero(warp.live);
  for (std::size_t word = 0; word < group.chunks.size(); ++word) {
    for (std::uint64_t left = group.chunks[word]; left != 0; left &= left - 1) {
      const std::uint64_t chunk = word * 64 + static_cast<std::uint64_t>(std::countr_zero(left));
      resolve_shared(warp, lane, chunk * kSlotChunk, request, nullptr);
    }
  }
}

}  // namespace

void begin_product(Warp& warp, const Operand* sums, std::size_t count, const Operand* factors) {
  WgmmaInFlight& products = warp.products;
  if (products.sums.empty()) {
    products.sums.assign(register_steps(warp), 0);
    products.factors = products.sums;
  }
  check_fence(warp, sums[0].slot, factors);
  if (products.groups.empty() || products.groups.back().number != products.gathering) {
    if (products.groups.size() >= kMostGroups) products.groups.erase(products.groups.begin());
    products.groups.push_back({products.gathering, {}});
    products.groups.back().chunks.resize(warp.block->shared.size() / kSlotChunk / 64 + 1);
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (in_flight(products, products.factors, sums[i].slot)) {
      finding(warp, warp.live, "sums in registers that hold another product's A, which no wgmma.wait_group waited for");
      break;
    }
  }
  for (std::size_t i = 0; i < count; ++i) group_of(products.sums, sums[i].slot) = products.gathering;
  for (std::size_t i = 0; factors != nullptr && i < 4; ++i) {
    if ((factors[i].slot & kConstantBit) != 0) continue;
    if (in_flight(products, products.sums, factors[i].slot)) {
      finding(warp, warp.live, "multiplies sums of a product that no wgmma.wait_group has waited for");
      break;
    }
    group_of(products.factors, factors[i].slot) = products.gathering;
  }
}

void note_operand(Warp& warp, std::uint64_t offset) {
  std::vector<std::uint64_t>& chunks = warp.products.groups.back().chunks;
  const std::uint64_t chunk = offset / kSlotChunk;
  if (chunk / 64 < chunks.size()) chunks[chunk / 64] |= std::uint64_t{1} << (chunk % 64);
}

void end_product(Warp& warp, const Operand* sums, std::size_t count) {
  std::vector<WgmmaInFlight::Sums>& left = warp.products.left;
  auto known = std::find_if(left.begin(), left.end(),
                            [&](const WgmmaInFlight::Sums& each) { return each.slots.front() == sums[0].slot; });
  if (known == left.end()) known = left.insert(left.end(), WgmmaInFlight::Sums{});
  known->slots.clear();
  for (std::size_t i = 0; i < count; ++i) known->slots.push_back(sums[i].slot);
  known->hash = hash_of(warp, known->slots);
}

void fence_products(Warp& warp) {
  warp.products.fenced = true;
  warp.products.left.clear();
  if (warp.program->has_register_operands) warp.products.computed.assign(register_steps(warp), 0);
}

void commit_products(Warp& warp) {
  ++warp.products.gathering;
}

void wait_for_products(Warp& warp, std::uint64_t newest) {
  WgmmaInFlight& products = warp.products;
  const std::uint64_t committed = products.gathering - 1;
  if (committed <= newest) return;
  products.ended = std::max(products.ended, static_cast<std::uint32_t>(committed - newest));
  std::size_t complete = 0;
  while (complete < products.groups.size() && products.groups[complete].number <= products.ended) {
    read_again(warp, products.groups[complete]);
    ++complete;
  }
  products.groups.erase(products.groups.begin(), products.groups.begin() + static_cast<std::ptrdiff_t>(complete));
}

bool product_reads(const Warp& warp, std::uint32_t offset) {
  const std::uint32_t chunk = offset / kSlotChunk;
  return std::any_of(warp.products.groups.begin(), warp.products.groups.end(),
                     [chunk](const WgmmaInFlight::Group& group) {
                       return chunk / 64 < group.chunks.size() && (group.chunks[chunk / 64] >> (chunk % 64) & 1) != 0;
                     });
}

void check_product_registers(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  WgmmaInFlight& products = warp.products;
  const DataFlow& flow = warp.program->flows[warp.pc];
  if (lanes == 0 || flow.product) return;
  // Compilers copy registers between iterations of a loop. A copy of accumulators therefore belongs to the same group,
  // and counts as computed only if its source does.
  const bool moves = in.kind == InstructionClass::kMove;
  std::uint32_t copied = 0;
  bool is_new = !moves;
  for (const DataFlow::Operand& read : flow.reads) {
    is_new = is_new || computed(products, read.slot);
    if (read.width == 0 || !in_flight(products, products.sums, read.slot)) continue;
    if (moves) {
      copied = std::max(copied, group_of(products.sums, read.slot));
      continue;
    }
    touched(warp, lanes, "reads sums of a product that no wgmma.wait_group has waited for");
    return;
  }
  const bool renames = moves && (copied != 0 || is_copy(flow));
  for (const Slot slot : flow.writes) {
    if ((slot & kConstantBit) != 0) continue;
    if (slot / kSlotsStep < products.computed.size()) products.computed[slot / kSlotsStep] = is_new ? 1 : 0;
    const bool sum = in_flight(products, products.sums, slot), factor = in_flight(products, products.factors, slot);
    if (renames && slot / kSlotsStep < products.sums.size()) group_of(products.sums, slot) = copied;
    if (renames || (!sum && !factor)) continue;
    touched(warp, lanes,
            sum ? "writes over sums of a product that no wgmma.wait_group has waited for"
                : "writes over A of a product that no wgmma.wait_group has waited for");
    return;
  }
}

}  // namespace fusec::emulator
