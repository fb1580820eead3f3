// Every memory access of the emulator goes through here. It translates device addresses to host memory, checks bounds,
// alignment, unwritten bytes and races, and counts the traffic.
#pragma once

#include "runtime/emulator/machine.h"

namespace fusec::emulator {

enum class Access : std::uint8_t { kRead, kWrite, kAtomic };

struct Request {
  Access access = Access::kRead;
  Space space = Space::kGeneric;
  std::uint32_t bytes = 0;          // per lane
  bool strong = false;              // volatile, relaxed, acquire, release: strong accesses do not race with each other
  const std::byte* data = nullptr;  // kWrite: the written bytes, lane after lane
  std::uint32_t stride = 0;         // bytes from one lane's data to the next
  bool into_registers = false;      // a load: unwritten bytes make the registers undefined
  bool async = false;               // by an asynchronous copy or wgmma that the lane issued
  bool async_proxy = false;         // through the async proxy: by a bulk copy or wgmma
  bool product = false;             // a read of wgmma, which lasts until the wait for its group
  bool constant = false;            // ld.global.nc: the kernel must not write these bytes
  // cp.async writes at some time between its issue and its wait. kIssued checks races and stores nothing; kComplete
  // stores the bytes and marks them as written.
  enum class Copy : std::uint8_t { kNone, kIssued, kComplete } copy = Copy::kNone;
};

using Addresses = std::uint64_t[kLanes];
using Hosts = std::byte* [kLanes];

// Computes the lanes' addresses: register plus offset.
void gather_addresses(const Warp& warp, const Instruction& in, Addresses& addresses);
// Checks and counts an access of `lanes`. Sets hosts[lane] to the lane's bytes in host memory, null after a finding.
void resolve(Warp& warp, const Request& request, std::uint32_t lanes, const Addresses& addresses, Hosts& hosts);

// The block of a shared address: the warp's own block, or a block of its cluster if the address has a rank above
// kRankShift.
Block* block_of_shared(Warp& warp, std::uint64_t address);
std::byte* resolve_shared(Warp& warp, int lane, std::uint64_t address, const Request& request, const std::byte* data);
// Counts the bank conflicts of an access to shared memory: passes over the banks beyond the fewest possible.
void count_banks(Warp& warp, std::uint32_t lanes, const Addresses& addresses, std::uint32_t bytes);

// Checks one lane's access to global memory; null after a finding. Its sectors count only as distinct sectors, not as
// requested ones.
std::byte* resolve_global(Warp& warp, int lane, std::uint64_t address, const Request& request, const std::byte* data);

// Completes all cp.async of the lanes so far, committed or not.
void complete_all_copies(Warp& warp, std::uint32_t lanes);

}  // namespace fusec::emulator
