// State of wgmma products between their issue and the wait for their group. The emulator computes accumulators at once.
// Until the wait, nobody may write the operands in shared memory, and no other instruction may touch the registers.
// Warps without products in flight skip all these checks.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/emulator/program.h"

namespace fusec::emulator {

struct Warp;

struct WgmmaInFlight {
  struct Group {
    std::uint32_t number = 0;
    std::vector<std::uint64_t> chunks;  // shared memory that is read: one bit per 16 bytes
  };
  // The accumulators of a product that no wgmma.fence has followed yet.
  struct Sums {
    std::vector<Slot> slots;
    std::uint64_t hash = 0;
  };
  std::vector<Group> groups;    // unfinished groups with products, oldest first; the last may be uncommitted
  std::uint32_t gathering = 1;  // number of the uncommitted group
  std::uint32_t ended = 0;      // greatest group number that has been waited for
  bool fenced = false;          // a wgmma.fence has been executed
  std::vector<Sums> left;       // accumulators of products since the last wgmma.fence
  // By register (slot / 4): the last group with the register as an accumulator, and as a part of A.
  std::vector<std::uint32_t> sums, factors;
  // By register, only in kernels with A in registers: 1 if another instruction wrote it since the last wgmma.fence.
  std::vector<std::uint8_t> computed;

  bool any() const { return !groups.empty() || !computed.empty(); }
};

// The warp issues a product. `sums`: the accumulator registers; `factors`: the four registers of A, null if A is in
// shared memory.
void begin_product(Warp& warp, const Operand* sums, std::size_t count, const Operand* factors);
// The product reads 16 bytes at `offset` of the block's shared memory.
void note_operand(Warp& warp, std::uint64_t offset);
// The product's accumulators are in their registers.
void end_product(Warp& warp, const Operand* sums, std::size_t count);

void fence_products(Warp& warp);
void commit_products(Warp& warp);
// Completes all committed groups except the `newest` newest ones.
void wait_for_products(Warp& warp, std::uint64_t newest);

// Whether an unfinished product of the warp reads this byte of the block's shared memory.
bool product_reads(const Warp& warp, std::uint32_t offset);
// Call before the instruction at warp.pc. Reports an instruction, other than wgmma, that touches registers of
// unfinished products.
void check_product_registers(Warp& warp, const Instruction& in, std::uint32_t lanes);

}  // namespace fusec::emulator
