// The workspace (or the prepared memory) as the emulator sees it: every value that lives there is a buffer of its own
// for as long as it is alive, with its own bounds and its own memory of what was written, over the bytes that it has in
// the common arena.
//
//   arena bytes   |--- a ---|--- b ---|        a kernel that is given a and runs over its end is out of bounds, though
//                 |--- c ---|                  b lies there; c, alive after a, starts with nothing written
//
// A value that takes over another's place, element by element, has its buffer from the first: who reads it elsewhere
// races, and what of it the step does not write is unwritten.
#pragma once

#include <optional>

#include "runtime/emulator/emulator.h"
#include "runtime/resolve_steps.h"

namespace fusec {

class EmulatorArena {
 public:
  // `name` is what the memory is called; of `values`, `resolved` has the places in numbers.
  EmulatorArena(const Graph& graph, std::string name, const std::vector<ArenaValue>& values,
                const std::vector<ResolvedArenaValue>& resolved, std::int64_t bytes, emulator::Memory& memory);

  // Ends the lifetimes that are over before this step and begins those that hold it. Throws InternalError where two
  // values that are alive overlap, or one lies outside the workspace: the plan is wrong.
  void begin_step(std::uint32_t position);

  // From now on what is alive is read alone. Returns what was not written as a whole, in words.
  std::vector<std::string> seal();

  // The memory as a kernel's caller knows it; nothing can be touched there.
  std::uint64_t window() const { return memory_.address(window_); }
  // An address in the window becomes one in the buffer of a value that is alive.
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
  std::vector<std::optional<emulator::Memory::Id>> buffers_;  // by arena value: of those alive
};

}  // namespace fusec
