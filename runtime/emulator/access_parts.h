// Shared by access.cpp, which chooses the state space, and access_global.cpp and access_shared.cpp.
#pragma once

#include <bit>
#include <cstring>
#include <string_view>

#include "runtime/emulator/access.h"

namespace fusec::emulator {

const char* verb(Access access);  // "load"
void report_misaligned(Warp& warp, int lane, std::uint64_t address, const Request& request, std::string_view where);
// Reports an address that is not a multiple of the access's width; returns whether it did.
inline bool misaligned(Warp& warp, int lane, std::uint64_t address, const Request& request, std::string_view where) {
  if ((address & (std::bit_floor(request.bytes) - 1)) == 0) return false;
  report_misaligned(warp, lane, address, request, where);
  return true;
}
// Call before a store of `data` (null: unknown) at `host`. Sets Block::changed if the bytes may change.
inline void note_change(Block& block, const std::byte* host, const std::byte* data, std::uint32_t bytes) {
  if (!block.changed) block.changed = data == nullptr || std::memcmp(host, data, bytes) != 0;
}
// The part of resolve() for global memory.
void resolve_global_lanes(Warp& warp, const Request& request, std::uint32_t lanes, const Addresses& addresses,
                          Hosts& hosts);

}  // namespace fusec::emulator
