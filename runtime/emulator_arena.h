// The workspace, or the prepared memory, in the emulator. Each value is a separate buffer while it is alive, over its
// bytes of the common arena, with its own bounds and its own record of written bytes.
//
//   arena bytes   |--- a ---|--- b ---|        a kernel that runs over the end of a is out of bounds, although b is
//                 |--- c ---|                  there; c is alive after a and starts with nothing written
//
// A value that overwrites another in place, element by element, shares that value's buffer. A thread that reads an
// element which another thread overwrites is a race, and bytes that the step does not write count as unwritten.
#pragma once

#include <optional>

#include "runtime/emulator/emulator.h"
#include "runtime/resolve_steps.h"

namespace fusec {

class EmulatorArena {
 public:
  // `name` is the memory's name in findings. `resolved` holds the offset and size of each of `values`.
  EmulatorArena(const Graph& graph, std::string name, const std::vector<ArenaValue>& values,
                const std::vector<ResolvedArenaValue>& resolved, std::int64_t bytes, emulator::Memory& memory);

  // Ends the lifetimes that are over before this step and begins those that include it. Throws InternalError for a
  // wrong plan: two live values overlap, or a value is outside the arena.
  void begin_step(std::uint32_t position);

  // Makes all live values read-only. Returns in words which of them are not completely written.
  std::vector<std::string> seal();

  // The address that stands for the whole arena in kernel arguments; no access there is valid.
  std::uint64_t window() const { return memory_.address(window_); }
  // Translate an address in the window to one in the buffer of a live value.
  emulator::Memory::Id buffer(std::uint32_t value) const;
  std::int64_t offset_in(std::uint32_t value, std::uint64_t window_address) const;

 private:
  void begin(std::uint32_t value);
  std::uint32_t heir_of(std::uint32_t value) const;
  std::string name_of(std::uint32_t value) const;

  const Graph& graph_;
  std::string name_;
  const std::vector<ArenaValue>& values_;
  const std::vector<ResolvedArenaValue>& resolved_;
  emulator::Memory& memory_;
  std::vector<std::byte> bytes_;
  emulator::Memory::Id window_;
  std::vector<std::optional<emulator::Memory::Id>> buffers_;  // by arena value; empty when not alive
};

}  // namespace fusec
