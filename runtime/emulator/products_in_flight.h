// wgmma between its issue and the wait for its group. The sums are in their registers at once; what counts as
// unfinished are the operands in shared memory, which nobody may write, and the registers, which no other instruction
// may touch. A warp without such products executes as if this did not exist.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/emulator/program.h"

namespace fusec::emulator {

struct Warp;

struct ProductsInFlight {
  struct Group {
    std::uint32_t number = 0;
    std::vector<std::uint64_t> chunks;  // of the block's shared memory that are read: a bit for each 16 bytes
  };
  // The sums of a product that no wgmma.fence has followed yet.
  struct Sums {
    std::vector<Slot> slots;
    std::uint64_t hash = 0;
  };
  std::vector<Group> groups;    // with products, oldest first; the last may not be committed yet
  std::uint32_t gathering = 1;  // the number of the group that has not been committed
  std::uint32_t ended = 0;      // groups up to this number have been waited for
  bool fenced = false;          // by a first wgmma.fence
  std::vector<Sums> left;       // since the last wgmma.fence
  // By kSlotsStep of the register file: the last group that has the register as a sum, as a part of A.
  std::vector<std::uint32_t> sums, factors;
  // Likewise, in kernels with A in registers: has another instruction computed it since the last wgmma.fence?
  std::vector<std::uint8_t> computed;

  bool any() const { return !groups.empty() || !computed.empty(); }
};

// The warp issues a product with these registers; `factors`: those of A, where it lies in registers.
void begin_product(Warp& warp, const Operand* sums, std::size_t count, const Operand* factors);
// It reads 16 bytes of the block's shared memory.
void note_factor(Warp& warp, std::uint64_t offset);
// Its sums are in their registers.
void end_product(Warp& warp, const Operand* sums, std::size_t count);

void fence_products(Warp& warp);
void commit_products(Warp& warp);
// All committed groups but the newest `newest` are complete.
void wait_for_products(Warp& warp, std::uint64_t newest);

// Does a product of the warp that is under way read the byte of its block's shared memory?
bool product_reads(const Warp& warp, std::uint32_t offset);
// The instruction at warp.pc, which is no wgmma, is about to be executed: it must leave those registers alone.
void check_product_registers(Warp& warp, const Instruction& in, std::uint32_t lanes);

}  // namespace fusec::emulator
