// Values that were loaded from memory which nobody has written. A load of such bytes is no fault in itself: a merge
// that looks one element past its list throws the value away. So each register's undefined lanes are carried along
// until the value matters, in a branch, an address, an atomic, a barrier or a store to global memory: then the load is
// reported. A select or a logical operation that a defined operand decides is defined. Stored to shared or local
// memory, the bytes count as unwritten again.
//
// A warp without such values, nearly every one, executes as if this did not exist.
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
    std::uint32_t load = 0;  // index of the load that it comes from
  };
  struct Place {
    std::string message, buffer;
    std::uint64_t address = 0;
  };
  struct Load {
    std::uint32_t pc = 0;
    std::array<Place, kLanes> places;
  };
  struct Read {  // by the load that is being executed: which of the lane's bytes
    int lane = 0;
    std::uint64_t bytes = 0;
    std::uint32_t load = 0;
  };
  std::vector<Register> registers;
  std::vector<Load> loads;
  std::vector<Read> reads;

  bool any() const { return !registers.empty(); }
};

// A lane of the load that is being executed reads bytes (a bit each, from the first of the access) nobody has written.
void note_unwritten(Warp& warp, int lane, std::uint64_t bytes, std::string message, std::uint64_t address,
                    std::string buffer);
// The load has put its elements of `size` bytes into the registers of its list: which of them are undefined now.
void note_loaded(Warp& warp, const Instruction& in, std::uint32_t size, std::uint32_t lanes);

// Executes `in`, at warp.pc, by the lanes whose guard holds, carrying undefined values along. `present` are the lanes
// of which an undefined guard may decide.
void execute_carefully(Warp& warp, const Instruction& in, std::uint32_t lanes, std::uint32_t present);
// A control instruction at warp.pc is about to be executed: its guard and operands matter.
void check_control(Warp& warp, std::uint32_t lanes, std::uint32_t present);

}  // namespace fusec::emulator
