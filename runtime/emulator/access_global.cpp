// Global memory: bounds, who wrote and read which byte, sectors.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>

#include "runtime/emulator/access_parts.h"

namespace fusec::emulator {
namespace {

std::string region_text(const Region* region) {
  return region == nullptr ? std::string() : region->name;
}

// Read first: many host threads would otherwise write one cache line over and over.
void mark_touched(Region& region) {
  if (!region.touched.load(std::memory_order_relaxed)) region.touched.store(true, std::memory_order_relaxed);
}

// Shadow state of global memory is shared by the host threads; no order between them is needed.
template <class T>
T peek(const T& place) {
  return std::atomic_ref<T>(const_cast<T&>(place)).load(std::memory_order_relaxed);
}
template <class T>
void poke(T& place, T value) {
  std::atomic_ref<T>(place).store(value, std::memory_order_relaxed);
}

void check_owners(Warp& warp, Region& region, int lane, std::uint64_t offset, const Request& request,
                  const std::byte* data) {
  Block& block = *warp.block;
  const bool races = !region.readers.empty() && !block.synchronizes() && !request.strong;
  const ByteOwner mine = block.owner;
  ByteOwner* writers = region.writers.data() + offset;
  ByteOwner* readers = region.readers.empty() ? nullptr : region.readers.data() + offset;
  bool unwritten = false, written_by_other = false, read_by_other = false;
  if (request.access == Access::kRead) {
    for (std::uint32_t i = 0; i < request.bytes; ++i) {
      const ByteOwner writer = peek(writers[i]);
      unwritten = unwritten || writer == kNobody;
      written_by_other = written_by_other || (writer >= kFirstCode && writer != mine);
    }
    if (readers != nullptr && !request.strong) {
      for (std::uint32_t i = 0; i < request.bytes; ++i) {
        const ByteOwner reader = peek(readers[i]);
        if (reader != mine) poke(readers[i], reader == kNobody ? mine : kMany);
      }
    }
  } else {
    const bool atomic = request.access == Access::kAtomic || request.strong;
    for (std::uint32_t i = 0; i < request.bytes; ++i) {
      const ByteOwner writer = peek(writers[i]);
      unwritten = unwritten || (request.access == Access::kAtomic && writer == kNobody);
      written_by_other = written_by_other || (writer >= kFirstCode && writer != mine);
      if (readers != nullptr) {
        const ByteOwner reader = peek(readers[i]);
        read_by_other = read_by_other || (reader != kNobody && reader != mine);
      }
      poke(writers[i], atomic ? kBefore : mine);
    }
  }
  if (unwritten) {
    report(warp, lane, FindingKind::kUnwrittenRead, fmt::format("reads byte {} that nobody has written", offset),
           region.base + offset, region.name);
  }
  if (!races || (!written_by_other && !read_by_other) || request.access == Access::kAtomic) return;
  if (data != nullptr && std::memcmp(region.host + offset, data, request.bytes) == 0) return;
  report(warp, lane, FindingKind::kGlobalRace,
         request.access == Access::kRead
             ? fmt::format("reads byte {}, which another block writes in this launch", offset)
         : written_by_other ? fmt::format("writes byte {}, which another block writes too", offset)
                            : fmt::format("writes byte {}, which another block reads in this launch", offset),
         region.base + offset, region.name);
}

void touch(std::uint8_t& sector) {
  if (peek(sector) == 0) poke(sector, std::uint8_t{1});
}

// Global lanes whose addresses all lie well inside one region, the common case; false otherwise.
bool resolve_together(Warp& warp, const Request& request, std::uint32_t lanes, const Addresses& addresses,
                      Hosts& hosts) {
  const int first = std::countr_zero(lanes);
  std::uint64_t low = addresses[first], high = low, all = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    const std::uint64_t address = (lanes >> lane & 1) != 0 ? addresses[lane] : addresses[first];
    low = std::min(low, address);
    high = std::max(high, address);
    all |= address;
  }
  Region* region = warp.block->launch->find(low);
  if (region == nullptr || low < region->base || high + request.bytes > region->base + region->bytes ||
      (all & (std::bit_floor(request.bytes) - 1)) != 0 || (request.access != Access::kRead && !region->writable)) {
    return false;
  }
  mark_touched(*region);
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    const std::uint64_t offset = addresses[lane] - region->base;
    hosts[lane] = region->host + offset;
    if (request.access == Access::kWrite) {
      note_change(*warp.block, hosts[lane], request.data == nullptr ? nullptr : request.data + lane * request.stride,
                  request.bytes);
    }
    if (!region->writers.empty()) {
      check_owners(warp, *region, lane, offset, request,
                   request.data == nullptr ? nullptr : request.data + lane * request.stride);
    }
    std::vector<std::uint8_t>& touched =
        request.access == Access::kRead ? region->sectors_read : region->sectors_written;
    touch(touched[offset / 32]);
    touch(touched[(offset + request.bytes - 1) / 32]);
    if (request.access == Access::kAtomic) touch(region->sectors_read[offset / 32]);
  }
  return true;
}

void count_sectors(Warp& warp, const Request& request, std::uint32_t lanes, const Addresses& addresses) {
  std::uint64_t sectors[2 * kLanes];
  std::size_t count = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    const std::uint64_t begin = addresses[lane] / 32, end = (addresses[lane] + request.bytes - 1) / 32;
    if (count == 0 || sectors[count - 1] != begin) sectors[count++] = begin;
    if (end != begin) sectors[count++] = end;
  }
  if (!std::is_sorted(sectors, sectors + count)) std::sort(sectors, sectors + count);
  count = static_cast<std::size_t>(std::unique(sectors, sectors + count) - sectors);
  Counters& counters = warp.block->counters;
  const std::uint64_t bytes = std::uint64_t{request.bytes} * static_cast<std::uint64_t>(std::popcount(lanes));
  ++counters.global_requests;
  if (request.access != Access::kWrite) {
    counters.sectors_read += count;
    counters.bytes_read += bytes;
  }
  if (request.access != Access::kRead) {
    counters.sectors_written += count;
    counters.bytes_written += bytes;
  }
}

}  // namespace

void resolve_global_lanes(Warp& warp, const Request& request, std::uint32_t lanes, const Addresses& addresses,
                          Hosts& hosts) {
  count_sectors(warp, request, lanes, addresses);
  Block& block = *warp.block;
  const bool strong = request.strong || request.access == Access::kAtomic, reads = request.access != Access::kWrite;
  block.did_strong = block.did_strong || strong;
  block.reads_global = block.reads_global || reads;
  block.polls = block.polls || (strong && reads);
  if (resolve_together(warp, request, lanes, addresses, hosts)) return;
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    hosts[lane] = resolve_global(warp, lane, addresses[lane], request,
                                 request.data == nullptr ? nullptr : request.data + lane * request.stride);
  }
}

std::byte* resolve_global(Warp& warp, int lane, std::uint64_t address, const Request& request, const std::byte* data) {
  Region* region = warp.block->launch->find(address);
  if (region == nullptr || address < region->base || address - region->base + request.bytes > region->bytes) {
    std::string message = fmt::format("{} of {} bytes outside every buffer", verb(request.access), request.bytes);
    if (region != nullptr) {
      message = fmt::format("{} of {} bytes at offset {} of a buffer of {} bytes", verb(request.access), request.bytes,
                            static_cast<std::int64_t>(address - region->base), region->bytes);
    }
    report(warp, lane, FindingKind::kOutOfBounds, std::move(message), address, region_text(region));
    return nullptr;
  }
  if (misaligned(warp, lane, address, request, region->name)) return nullptr;
  if (request.access != Access::kRead && !region->writable) {
    report(warp, lane, FindingKind::kReadOnlyWrite, "writes a buffer that is an input", address, region->name);
    return nullptr;
  }
  mark_touched(*region);
  warp.block->reads_global = warp.block->reads_global || request.access != Access::kWrite;
  const std::uint64_t offset = address - region->base;
  if (request.access == Access::kWrite) note_change(*warp.block, region->host + offset, data, request.bytes);
  if (!region->writers.empty()) check_owners(warp, *region, lane, offset, request, data);
  std::vector<std::uint8_t>& touched = request.access == Access::kRead ? region->sectors_read : region->sectors_written;
  for (std::uint64_t sector = offset / 32; sector <= (offset + request.bytes - 1) / 32; ++sector)
    touch(touched[sector]);
  return region->host + offset;
}

}  // namespace fusec::emulator
