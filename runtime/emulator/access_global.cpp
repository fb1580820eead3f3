// Accesses to global memory: checks bounds, records which block reads and writes each byte, counts sectors.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstring>
#include <thread>

#include "runtime/emulator/access_parts.h"
#include "runtime/emulator/release_acquire.h"

namespace fusec::emulator {
namespace {

std::string region_text(const Region* region) {
  return region == nullptr ? std::string() : region->name;
}

// Reads before it writes, since many host threads would otherwise keep writing one cache line.
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

bool is_other_block(ByteOwner owner, ByteOwner mine) {
  const auto code = static_cast<ByteOwner>(owner & ~kStrongOwner);
  return code >= kFirstCode && code != mine;
}

// Earlier accesses to the bytes of an access, from their shadow state.
struct Conflicts {
  ByteOwner writer = kNobody, reader = kNobody;  // another block with an unordered access
  bool unwritten = false;
};

Conflicts record_read(Region& region, std::uint64_t offset, std::uint32_t bytes, ByteOwner mine, bool strong) {
  Conflicts found;
  const ByteOwner* writers = region.writers.data() + offset;
  for (std::uint32_t i = 0; i < bytes; ++i) {
    const ByteOwner writer = peek(writers[i]);
    found.unwritten = found.unwritten || writer == kNobody;
    if (is_other_block(writer, mine) && !(strong && (writer & kStrongOwner) != 0)) found.writer = writer;
  }
  if (region.readers.empty()) return found;
  ByteOwner* readers = region.readers.data() + offset;
  for (std::uint32_t i = 0; i < bytes; ++i) {
    const ByteOwner reader = peek(readers[i]);
    if (strong) {  // keep a weak reader: more accesses race with it
      if (reader == kNobody) poke(readers[i], static_cast<ByteOwner>(mine | kStrongOwner));
      if ((reader & kStrongOwner) != 0 && is_other_block(reader, mine))
        poke(readers[i], static_cast<ByteOwner>(kMany | kStrongOwner));
    } else if (reader != mine) {
      poke(readers[i], reader == kNobody || (reader & kStrongOwner) != 0 ? mine : kMany);
    }
  }
  return found;
}

Conflicts record_write(Region& region, std::uint64_t offset, std::uint32_t bytes, ByteOwner mine, bool strong) {
  Conflicts found;
  ByteOwner* writers = region.writers.data() + offset;
  const ByteOwner* readers = region.readers.empty() ? nullptr : region.readers.data() + offset;
  for (std::uint32_t i = 0; i < bytes; ++i) {
    const ByteOwner writer = peek(writers[i]);
    found.unwritten = found.unwritten || writer == kNobody;
    if (is_other_block(writer, mine) && !(strong && (writer & kStrongOwner) != 0)) found.writer = writer;
    if (readers != nullptr) {
      const ByteOwner reader = peek(readers[i]);
      if (is_other_block(reader, mine) && !(strong && (reader & kStrongOwner) != 0)) found.reader = reader;
    }
    poke(writers[i], strong ? static_cast<ByteOwner>(mine | kStrongOwner) : mine);
  }
  return found;
}

// Whether global memory holds the data of this write, or soon does: another block's host thread marks the bytes that it
// writes before it stores them, and blocks may write equal values. Once a region had a race, nobody waits there again.
bool is_written_alike(Region& region, std::uint64_t offset, const void* data, std::uint32_t bytes) {
  const auto is_equal = [&] { return std::memcmp(region.host + offset, data, bytes) == 0; };
  if (is_equal()) return true;
  if (peek(region.had_race)) return false;
  constexpr std::chrono::milliseconds kLongestWait{200};
  for (const auto end = std::chrono::steady_clock::now() + kLongestWait; std::chrono::steady_clock::now() < end;) {
    std::this_thread::yield();
    if (is_equal()) return true;
  }
  poke(region.had_race, true);
  return false;
}

bool writes_in_launch(const Region& region, std::uint64_t offset, std::uint32_t bytes) {
  for (std::uint32_t i = 0; i < bytes; ++i) {
    if ((peek(region.writers[offset + i]) & ~kStrongOwner) >= kFirstCode) return true;
  }
  return false;
}

std::string race_text(Access access, std::uint64_t offset, const Conflicts& found) {
  if (access == Access::kRead) {
    return fmt::format("reads byte {}, which another block {} in this launch", offset,
                       (found.writer & kStrongOwner) != 0 ? "updates atomically" : "writes");
  }
  const char* what = access == Access::kAtomic ? "updates atomically" : "writes";
  if (found.writer == kNobody) return fmt::format("{} byte {}, which another block reads in this launch", what, offset);
  return fmt::format("{} byte {}, which another block {} too", what, offset,
                     (found.writer & kStrongOwner) != 0 ? "updates atomically" : "writes");
}

void check_bulk_stores(Warp& warp, const Region& region, int lane, std::uint64_t offset, const Request& request) {
  for (std::uint32_t i = 0; i < request.bytes; ++i) {
    if (peek(region.bulk_stores[offset + i]) == 0) continue;
    report(warp, lane, FindingKind::kAsyncRead,
           fmt::format("{} of byte {}, which a bulk store still writes: no cp.async.bulk.wait_group has come yet",
                       verb(request.access), offset + i),
           region.base + offset + i, region.name);
    return;
  }
}

void check_owners(Warp& warp, Region& region, int lane, std::uint64_t offset, const Request& request,
                  const std::byte* data) {
  Block& block = *warp.block;
  const bool is_read = request.access == Access::kRead, is_atomic = request.access == Access::kAtomic;
  const Conflicts found = is_read
                              ? record_read(region, offset, request.bytes, block.owner, request.strong)
                              : record_write(region, offset, request.bytes, block.owner, request.strong || is_atomic);
  if (request.constant && !region.readers.empty() && writes_in_launch(region, offset, request.bytes)) {
    report(warp, lane, FindingKind::kGlobalRace,
           fmt::format("reads byte {}, which this kernel writes, through the read-only cache (.nc)", offset),
           region.base + offset, region.name);
  }
  if (found.unwritten && request.access != Access::kWrite) {
    std::string text = fmt::format("reads byte {} that nobody has written", offset);
    if (request.into_registers) {
      std::uint64_t missing = 0;
      for (std::uint32_t i = 0; i < request.bytes; ++i)
        missing |= std::uint64_t{peek(region.writers[offset + i]) == kNobody} << i;
      note_unwritten(warp, lane, missing, std::move(text), region.base + offset, region.name);
    } else {
      report(warp, lane, FindingKind::kUnwrittenRead, std::move(text), region.base + offset, region.name);
    }
  }
  if (!region.bulk_stores.empty() && !request.async) check_bulk_stores(warp, region, lane, offset, request);
  if ((found.writer == kNobody && found.reader == kNobody) || region.readers.empty()) return;
  if ((found.writer == kNobody || blocks_synchronize(block, found.writer)) &&
      (found.reader == kNobody || blocks_synchronize(block, found.reader))) {
    return;
  }
  if (data != nullptr && is_written_alike(region, offset, data, request.bytes)) return;
  report(warp, lane, FindingKind::kGlobalRace, race_text(request.access, offset, found), region.base + offset,
         region.name);
}

void touch(std::uint8_t& sector) {
  if (peek(sector) == 0) poke(sector, std::uint8_t{1});
}

// Handles the common case: all addresses are aligned and inside one region. Returns false in all other cases.
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
  if (region == nullptr || low < region->base || request.bytes > region->bytes ||
      high - region->base > region->bytes - request.bytes || (all & (std::bit_floor(request.bytes) - 1)) != 0 ||
      (request.access != Access::kRead && !region->writable)) {
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

// Counts the traffic of a request; returns the number of its distinct sectors.
std::uint64_t count_sectors(Warp& warp, const Request& request, std::uint32_t lanes, const Addresses& addresses) {
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
  return count;
}

// Counts sectors of small buffers. Assumes that all lanes of a request read the same buffer, as in all emitted kernels.
void count_small(Warp& warp, std::uint64_t sectors, std::uint32_t lanes, const Addresses& addresses) {
  const Region* region = warp.block->launch->find(addresses[static_cast<std::size_t>(std::countr_zero(lanes))]);
  if (region != nullptr && region->bytes < kSmallBuffer) warp.block->counters.small_sectors_read += sectors;
}

}  // namespace

void resolve_global_lanes(Warp& warp, const Request& request, std::uint32_t lanes, const Addresses& addresses,
                          Hosts& hosts) {
  const std::uint64_t sectors = count_sectors(warp, request, lanes, addresses);
  if (request.access != Access::kWrite && lanes != 0) count_small(warp, sectors, lanes, addresses);
  Block& block = *warp.block;
  const bool strong = request.strong || request.access == Access::kAtomic, reads = request.access != Access::kWrite;
  if (strong) strong_global_access(block);
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
