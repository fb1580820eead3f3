// Every access to memory goes through here: addresses become places in host memory, and on the way bounds, alignment,
// "was it written" and races are checked and the traffic is counted.
#pragma once

#include "runtime/emulator/machine.h"

namespace fusec::emulator {

enum class Access : std::uint8_t { kRead, kWrite, kAtomic };

struct Request {
  Access access = Access::kRead;
  Space space = Space::kGeneric;
  std::uint32_t bytes = 0;          // of each lane
  bool strong = false;              // volatile, relaxed, acquire, release: does not race with its like
  const std::byte* data = nullptr;  // kWrite: what is written, lane after lane
  std::uint32_t stride = 0;         // of `data`
  bool into_registers = false;      // a load: what nobody has written is noted as undefined
  bool async = false;               // on behalf of the lane, by a copy that it does not wait for or by wgmma
  bool async_proxy = false;         // by a bulk copy or wgmma: through another proxy than the threads' accesses
  bool product = false;             // by wgmma, until it is waited for
  bool constant = false;            // ld.global.nc: what the kernel does not write
  // cp.async writes at any time between its issue and its wait: races are looked for when it is issued (nothing is
  // stored then), and what it has written counts as written when it is waited for.
  enum class Copy : std::uint8_t { kNone, kIssued, kComplete } copy = Copy::kNone;
};

using Addresses = std::uint64_t[kLanes];
using Hosts = std::byte* [kLanes];

// The lanes' addresses: register plus offset.
void gather_addresses(const Warp& warp, const Instruction& in, Addresses& addresses);
// hosts[lane] is where the lane's bytes lie, or null after a finding.
void resolve(Warp& warp, const Request& request, std::uint32_t lanes, const Addresses& addresses, Hosts& hosts);

// One access to the warp's own shared memory (or a cluster neighbour's), checked like the above. Null after a finding.
// Shared addresses of the block itself, or with a rank of its cluster above kRankShift.
Block* block_of_shared(Warp& warp, std::uint64_t address);
std::byte* resolve_shared(Warp& warp, int lane, std::uint64_t address, const Request& request, const std::byte* data);
// The passes over the banks that such an access takes beyond the fewest possible.
void count_banks(Warp& warp, std::uint32_t lanes, const Addresses& addresses, std::uint32_t bytes);

// The lane's global memory, with the sectors it touches counted as distinct ones only.
std::byte* resolve_global(Warp& warp, int lane, std::uint64_t address, const Request& request, const std::byte* data);

// The lanes' cp.async so far, committed or not, are complete.
void complete_all_copies(Warp& warp, std::uint32_t lanes);

}  // namespace fusec::emulator
