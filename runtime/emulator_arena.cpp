#include "runtime/emulator_arena.h"

#include <fmt/format.h>

#include "codegen/launch/arena.h"
#include "ir/error.h"

namespace fusec {

EmulatorArena::EmulatorArena(const Graph& graph, std::string name, const std::vector<ArenaValue>& values,
                             const std::vector<ResolvedArenaValue>& resolved, std::int64_t bytes,
                             emulator::Memory& memory)
    : graph_(graph),
      name_(std::move(name)),
      values_(values),
      resolved_(resolved),
      memory_(memory),
      bytes_(static_cast<std::size_t>(bytes)),
      window_(memory.add({.name = name_, .bytes = {}, .initialized = false})),
      buffers_(values.size()) {}

void EmulatorArena::begin_step(std::uint32_t position) {
  for (std::uint32_t i = 0; i < buffers_.size(); ++i)
    if (buffers_[i] && values_[i].last_step < position) {
      const std::uint32_t heir = heir_of(i);
      if (heir == kNone)
        memory_.remove(*buffers_[i]);
      else
        memory_.take_over(*buffers_[i], name_of(heir));
      buffers_[i].reset();
    }
  for (std::uint32_t i = 0; i < buffers_.size(); ++i)
    if (!buffers_[i] && values_[i].first_step <= position && position <= values_[i].last_step) begin(i);
}

// The value that took over this value's buffer in place; kNone without one.
std::uint32_t EmulatorArena::heir_of(std::uint32_t value) const {
  for (std::uint32_t i = 0; i < buffers_.size(); ++i)
    if (i != value && values_[i].in_place_of == value && buffers_[i] == buffers_[value]) return i;
  return kNone;
}

std::string EmulatorArena::name_of(std::uint32_t value) const {
  const ValueId v = values_[value].value;
  return v == kNone ? fmt::format("scratch memory {}", value) : graph_.value(v).name;
}

void EmulatorArena::begin(std::uint32_t value) {
  const ResolvedArenaValue& place = resolved_[value];
  const auto size = static_cast<std::int64_t>(bytes_.size());
  if (place.offset < 0 || place.bytes < 0 || place.offset + place.bytes > size || place.offset % kArenaAlignment != 0)
    throw InternalError(fmt::format("\"{}\" has bytes {} to {} of a {} of {}", name_of(value), place.offset,
                                    place.offset + place.bytes, name_, size));
  if (const std::uint32_t before = values_[value].in_place_of; before != kNone && buffers_[before]) {
    if (resolved_[before].offset != place.offset || resolved_[before].bytes != place.bytes)
      throw InternalError(
          fmt::format("\"{}\" is to take over the place of \"{}\", which is another", name_of(value), name_of(before)));
    buffers_[value] = buffers_[before];
    return;
  }
  for (std::uint32_t other = 0; other < buffers_.size(); ++other) {
    const ResolvedArenaValue& taken = resolved_[other];
    if (buffers_[other] && place.offset < taken.offset + taken.bytes && taken.offset < place.offset + place.bytes)
      throw InternalError(fmt::format("\"{}\" lies in the {} where \"{}\" is still alive", name_of(value), name_,
                                      memory_.buffer(*buffers_[other]).name));
  }
  const std::span<std::byte> bytes =
      std::span(bytes_).subspan(static_cast<std::size_t>(place.offset), static_cast<std::size_t>(place.bytes));
  buffers_[value] = memory_.add({.name = name_of(value), .bytes = bytes, .initialized = false});
}

std::vector<std::string> EmulatorArena::seal() {
  std::vector<std::string> findings;
  for (std::uint32_t i = 0; i < buffers_.size(); ++i) {
    if (!buffers_[i]) continue;
    if (const auto byte = memory_.first_unwritten(*buffers_[i]))
      findings.push_back(fmt::format("nobody wrote byte {} of \"{}\", which is {}", *byte, name_of(i), name_));
    const std::span<std::byte> bytes = memory_.buffer(*buffers_[i]).bytes;
    memory_.remove(*buffers_[i]);
    buffers_[i] = memory_.add({.name = name_of(i), .bytes = bytes, .initialized = true, .writable = false});
  }
  return findings;
}

emulator::Memory::Id EmulatorArena::buffer(std::uint32_t value) const {
  if (!buffers_.at(value)) throw InternalError("a step is given a value of the " + name_ + " that is not alive");
  return *buffers_[value];
}

std::int64_t EmulatorArena::offset_in(std::uint32_t value, std::uint64_t window_address) const {
  return static_cast<std::int64_t>(window_address - window()) - resolved_.at(value).offset;
}

}  // namespace fusec
