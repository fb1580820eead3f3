// What the files of access share: access.cpp chooses the space, access_global.cpp and access_shared.cpp know theirs.
#pragma once

#include <bit>
#include <cstring>
#include <string_view>

#include "runtime/emulator/access.h"

namespace fusec::emulator {

const char* verb(Access access);  // "load"
void report_misaligned(Warp& warp, int lane, std::uint64_t address, const Request& request, std::string_view where);
// Reports an address that is no multiple of the access's width.
inline bool misaligned(Warp& warp, int lane, std::uint64_t address, const Request& request, std::string_view where) {
  if ((address & (std::bit_floor(request.bytes) - 1)) == 0) return false;
  report_misaligned(warp, lane, address, request, where);
  return true;
}
// A store is about to put `data` (unknown where null) at `host`.
inline void note_change(Block& block, const std::byte* host, const std::byte* data, std::uint32_t bytes) {
  if (!block.changed) block.changed = data == nullptr || std::memcmp(host, data, bytes) != 0;
}
// All lanes of one access to global memory.
void resolve_global_lanes(Warp& warp, const Request& request, std::uint32_t lanes, const Addresses& addresses,
                          Hosts& hosts);

}  // namespace fusec::emulator
