// Tracks values that were loaded from unwritten memory. Such a load is not a fault in itself: a merge that reads one
// element past its list discards the value. The emulator therefore tracks undefined lanes of registers, and reports the
// load when its value affects a branch, an address, an atomic, a barrier or a store to global memory. A select or
// logical operation that a defined operand decides is defined. A store of an undefined value to shared or local memory
// makes the bytes unwritten again.
//
// Warps without undefined values, nearly all, skip the tracking.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/emulator/program.h"

namespace fusec::emulator {

struct Warp;

struct UndefinedValues {
  struct Register {
    Slot slot = 0;
    std::uint32_t lanes = 0;
    std::uint32_t load = 0;  // index into `loads`
  };
  struct Place {
    std::string message, buffer;
    std::uint64_t address = 0;
  };
  struct Load {
    std::uint32_t pc = 0;
    std::array<Place, kLanes> places;
  };
  struct Read {  // unwritten bytes that a lane of the current load read
    int lane = 0;
    std::uint64_t bytes = 0;
    std::uint32_t load = 0;
  };
  std::vector<Register> registers;
  std::vector<Load> loads;
  std::vector<Read> reads;

  bool any() const { return !registers.empty(); }
};

// Records that a lane of the current load reads unwritten bytes. `bytes` has one bit per byte of the access.
void note_unwritten(Warp& warp, int lane, std::uint64_t bytes, std::string message, std::uint64_t address,
                    std::string buffer);
// Call after the load has put its elements of `size` bytes into the registers of its list. Marks the undefined ones.
void note_loaded(Warp& warp, const Instruction& in, std::uint32_t size, std::uint32_t lanes);

// Executes `in`, at warp.pc, in `lanes` (those with a true guard) and tracks undefined values. `present`: all lanes at
// the instruction; their guard may be undefined.
void execute_carefully(Warp& warp, const Instruction& in, std::uint32_t lanes, std::uint32_t present);
// Call before the control instruction at warp.pc. Reports undefined values in its guard and operands.
void check_control(Warp& warp, std::uint32_t lanes, std::uint32_t present);

}  // namespace fusec::emulator
