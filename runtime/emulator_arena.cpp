#include "runtime/emulator_arena.h"

#include <fmt/format.h>

#include "codegen/arena.h"
#include "ir/error.h"

namespace fusec {

EmulatorArena::EmulatorArena(const Graph& graph, const LaunchPlan& plan, const ResolvedPlan& resolved,
                             emulator::Memory& memory)
    : graph_(graph),
      plan_(plan),
      resolved_(resolved),
      memory_(memory),
      bytes_(static_cast<std::size_t>(resolved.workspace_bytes)),
      window_(memory.add({.name = "workspace", .bytes = {}, .initialized = false})),
      buffers_(plan.arena.size()) {}

void EmulatorArena::begin_step(std::uint32_t position) {
  for (std::uint32_t i = 0; i < buffers_.size(); ++i)
    if (buffers_[i] && plan_.arena[i].last_step < position) {
      memory_.remove(*buffers_[i]);
      buffers_[i].reset();
    }
  for (std::uint32_t i = 0; i < buffers_.size(); ++i)
    if (!buffers_[i] && plan_.arena[i].first_step <= position && position <= plan_.arena[i].last_step) begin(i);
}

void EmulatorArena::begin(std::uint32_t value) {
  const ResolvedArenaValue& place = resolved_.arena[value];
  const ValueId v = plan_.arena[value].value;
  const std::string name = v == kNone ? fmt::format("scratch memory {}", value) : graph_.value(v).name;
  if (place.offset < 0 || place.bytes < 0 || place.offset + place.bytes > resolved_.workspace_bytes ||
      place.offset % kArenaAlignment != 0)
    throw InternalError(fmt::format("\"{}\" has bytes {} to {} of a workspace of {}", name, place.offset,
                                    place.offset + place.bytes, resolved_.workspace_bytes));
  for (std::uint32_t other = 0; other < buffers_.size(); ++other) {
    const ResolvedArenaValue& taken = resolved_.arena[other];
    if (buffers_[other] && place.offset < taken.offset + taken.bytes && taken.offset < place.offset + place.bytes)
      throw InternalError(fmt::format("\"{}\" lies in the workspace where \"{}\" is still alive", name,
                                      memory_.buffer(*buffers_[other]).name));
  }
  const std::span<std::byte> bytes =
      std::span(bytes_).subspan(static_cast<std::size_t>(place.offset), static_cast<std::size_t>(place.bytes));
  buffers_[value] = memory_.add({.name = name, .bytes = bytes, .initialized = false});
}

emulator::Memory::Id EmulatorArena::buffer(std::uint32_t value) const {
  if (!buffers_.at(value)) throw InternalError("a step is given a value of the workspace that is not alive");
  return *buffers_[value];
}

std::int64_t EmulatorArena::offset_in(std::uint32_t value, std::uint64_t window_address) const {
  return static_cast<std::int64_t>(window_address - window()) - resolved_.arena.at(value).offset;
}

}  // namespace fusec
