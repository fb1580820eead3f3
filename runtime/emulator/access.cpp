#include "runtime/emulator/access.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>

#include "runtime/emulator/lanes.h"

namespace fusec::emulator {
namespace {

std::uint16_t thread_of(const Warp& warp, int lane) {
  return static_cast<std::uint16_t>(warp.number * kLanes + lane);
}

// ---- shared memory

class SharedAccess {
 public:
  SharedAccess(Warp& warp, Block& home, int lane, const Request& request)
      : warp_(warp),
        home_(home),
        lane_(lane),
        request_(request),
        remote_(&home != warp.block),
        row_(remote_ ? home.row_of_rank(warp.block->rank) : warp.number),
        thread_(request.async && request.access != Access::kRead ? kAsyncWriter
                : remote_ ? static_cast<std::uint16_t>(kRemoteThread + warp.block->rank)
                          : thread_of(warp, lane)) {
    races_ = home.launch->options->check_races;
    if (!remote_) return;
    if (request.strong || request.access == Access::kAtomic) warp.block->did_strong = true;
    if (!request.async) home.remote_times[warp.block->rank] = home.now;
    races_ = races_ && !home.synchronizes() && !warp.block->synchronizes();
  }

  // False where the access must not be carried out.
  bool touch(std::uint32_t offset, const std::byte* data) {
    const std::uint32_t end = offset + request_.bytes;
    for (std::uint32_t at = offset; at < end;) {
      const std::uint32_t stop = std::min(end, (at | 3u) + 1);
      const auto mask = static_cast<std::uint8_t>(((1u << (stop - at)) - 1) << (at % 4));
      SharedWord& word = home_.shadow[at / 4];
      if ((word.allocated & mask) != mask) {
        finding(FindingKind::kOutOfBounds,
                fmt::format("{} of {} bytes outside the block's shared memory", verb(), request_.bytes), at);
        return false;
      }
      if ((word.pending & mask) != 0) {
        finding(FindingKind::kAsyncRead, "touches bytes that an asynchronous copy has not yet been waited for", at);
      }
      if (request_.access == Access::kRead)
        read(word, mask, at);
      else
        write(word, mask, at, data == nullptr ? nullptr : data + (at - offset), stop - at);
      at = stop;
    }
    return true;
  }

 private:
  const char* verb() const {
    return request_.access == Access::kRead ? "load" : request_.access == Access::kWrite ? "store" : "atomic";
  }

  void finding(FindingKind kind, std::string message, std::uint32_t at) const {
    std::string variable;
    const Program& program = *warp_.program;
    for (const Placed& placed : program.shared) {
      // The gap behind a variable is its own guard.
      if (at >= placed.offset && at < placed.offset + placed.bytes + 128) variable = placed.name;
    }
    if (at >= program.dynamic_shared_offset && program.dynamic_shared_offset < home_.shared.size()) {
      variable = "dynamic shared memory";
    }
    report(warp_, lane_, kind, std::move(message), at, std::move(variable));
  }

  bool ordered(std::size_t column, std::uint32_t time) const { return home_.seen_at(row_, column) >= time; }

  std::size_t column_of(std::uint16_t thread) const {
    if (thread == kAsyncWriter) return home_.warps.size();
    return thread >= kRemoteThread ? home_.column_of_rank(thread - kRemoteThread) : thread / kLanes;
  }

  bool unordered_writer(const SharedWord& word, std::uint8_t mask) const {
    return (word.written_bytes & mask) != 0 && word.writer != thread_ &&
           !ordered(column_of(word.writer), word.write_time);
  }

  // Bulk copies and wgmma see what threads have stored only behind a fence.proxy.async, of the writer or of the issuer.
  void check_proxy(const SharedWord& word, std::uint8_t mask, std::uint32_t at) const {
    if (!request_.async || remote_ || word.writer >= kRemoteThread || (word.written_bytes & mask) == 0) return;
    const std::size_t writer = word.writer / kLanes, columns = home_.columns();
    if (home_.fenced[writer * columns + writer] >= word.write_time ||
        home_.fenced[warp_.number * columns + writer] >= word.write_time) {
      return;
    }
    finding(FindingKind::kProxyFence, "reads asynchronously what threads stored, without fence.proxy.async between",
            at);
  }

  void race(const char* what, std::uint32_t at, std::uint32_t other) const {
    std::string who = other == kSeveralReaders ? "other threads"
                      : other == kAsyncWriter  ? "an asynchronous copy"
                      : other >= kRemoteThread ? fmt::format("block {} of the cluster", other - kRemoteThread)
                      : remote_                ? fmt::format("thread {} of block {} of the cluster", other, home_.rank)
                                               : fmt::format("thread {}", other);
    finding(FindingKind::kSharedRace, fmt::format("{} {} without a barrier between", what, who), at);
  }

  void read(SharedWord& word, std::uint8_t mask, std::uint32_t at) {
    if ((word.written & mask) != mask) {
      finding(FindingKind::kUnwrittenRead, "reads shared memory that nobody has written", at);
      word.written |= mask;  // said once
    }
    if (!races_) return;
    if (unordered_writer(word, mask) && !(request_.strong && word.strong_write)) {
      if (word.writer == kAsyncWriter) {
        finding(FindingKind::kAsyncRead, "reads what a bulk copy brings without waiting for its mbarrier", at);
      } else {
        race("reads what was written by", at, word.writer);
      }
    }
    check_proxy(word, mask, at);
    if (word.read_time != home_.now || word.read_bytes != mask) forget_ordered_readers(word, mask);
    if (word.reading_warps == 0 && word.reading_blocks == 0)
      word.reader = thread_;
    else if (word.reader != thread_)
      word.reader = kSeveralReaders;
    if (remote_)
      word.reading_blocks = static_cast<std::uint16_t>(word.reading_blocks | 1u << warp_.block->rank);
    else
      word.reading_warps |= 1u << warp_.number;
    word.read_bytes = mask;
    word.read_time = home_.now;
  }

  void forget_ordered_readers(SharedWord& word, std::uint8_t mask) const {
    if (word.read_bytes != mask) {
      word.reading_warps = 0;
      word.reading_blocks = 0;
      return;
    }
    for (std::size_t rank = 0; word.reading_blocks != 0 && rank < home_.ranks; ++rank) {
      if (!ordered(home_.column_of_rank(rank), word.read_time)) continue;
      word.reading_blocks = static_cast<std::uint16_t>(word.reading_blocks & ~(1u << rank));
    }
    std::uint32_t left = word.reading_warps;
    while (left != 0) {
      const auto other = static_cast<std::uint32_t>(std::countr_zero(left));
      left &= left - 1;
      if (ordered(other, word.read_time)) word.reading_warps &= ~(1u << other);
    }
  }

  void write(SharedWord& word, std::uint8_t mask, std::uint32_t at, const std::byte* data, std::uint32_t bytes) {
    const bool changes =
        data == nullptr || (word.written & mask) != mask || std::memcmp(&home_.shared[at], data, bytes) != 0;
    if (request_.access == Access::kAtomic && (word.written & mask) != mask) {
      finding(FindingKind::kUnwrittenRead, "updates shared memory that nobody has written", at);
    }
    if (races_ && changes) {
      const bool strong = request_.strong || request_.access == Access::kAtomic;
      if (unordered_writer(word, mask) && !(strong && word.strong_write)) {
        race("writes over what was written by", at, word.writer);
      }
      if (!strong) check_readers(word, mask, at);
    }
    const bool same = word.writer == thread_ && word.write_time == home_.now;
    // A thread's atomic behind its own plain store does not hide that store from the others' atomics.
    if (same && request_.access == Access::kAtomic && !word.strong_write && (word.written_bytes & mask) == mask) return;
    word.written_bytes = same ? word.written_bytes | mask : mask;
    word.written |= mask;
    word.writer = thread_;
    word.write_time = home_.now;
    word.strong_write = request_.strong || request_.access == Access::kAtomic;
    word.reading_warps = 0;
    word.reading_blocks = 0;
    word.read_time = 0;
    word.read_bytes = 0;
  }

  void check_readers(const SharedWord& word, std::uint8_t mask, std::uint32_t at) const {
    if ((word.read_bytes & mask) == 0) return;
    for (std::size_t rank = 0; word.reading_blocks != 0 && rank < home_.ranks; ++rank) {
      if ((word.reading_blocks >> rank & 1) == 0 || (remote_ && rank == warp_.block->rank)) continue;
      if (ordered(home_.column_of_rank(rank), word.read_time)) continue;
      race("writes over what was read by", at, static_cast<std::uint32_t>(kRemoteThread + rank));
      return;
    }
    std::uint32_t left = word.reading_warps;
    while (left != 0) {
      const auto other = static_cast<std::uint32_t>(std::countr_zero(left));
      left &= left - 1;
      if (!remote_ && other == warp_.number && word.reader == thread_) continue;
      if (ordered(other, word.read_time)) continue;
      race("writes over what was read by", at, word.reader);
      return;
    }
  }

  Warp& warp_;
  Block& home_;
  int lane_;
  const Request& request_;
  bool remote_;      // another block of the cluster than the warp's
  std::size_t row_;  // of home_.seen
  std::uint16_t thread_;
  bool races_ = false;
};

// ---- global memory

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

const char* verb(Access access) {
  return access == Access::kRead ? "load" : access == Access::kWrite ? "store" : "atomic";
}

bool misaligned(Warp& warp, int lane, std::uint64_t address, const Request& request, const std::string& where) {
  const std::uint32_t alignment = std::bit_floor(request.bytes);
  if ((address & (alignment - 1)) == 0) return false;
  report(warp, lane, FindingKind::kMisaligned,
         fmt::format("{} of {} bytes at an address that is no multiple of it", verb(request.access), request.bytes),
         address, where);
  return true;
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

void resolve_global_lanes(Warp& warp, const Request& request, std::uint32_t lanes, const Addresses& addresses,
                          Hosts& hosts) {
  count_sectors(warp, request, lanes, addresses);
  if (request.strong || request.access == Access::kAtomic) warp.block->did_strong = true;
  if (resolve_together(warp, request, lanes, addresses, hosts)) return;
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    hosts[lane] = resolve_global(warp, lane, addresses[lane], request,
                                 request.data == nullptr ? nullptr : request.data + lane * request.stride);
  }
}

// ---- the small spaces

const Placed* find_placed(const std::vector<Placed>& layout, std::uint64_t address, std::uint32_t bytes) {
  auto above = std::upper_bound(layout.begin(), layout.end(), address,
                                [](std::uint64_t at, const Placed& placed) { return at < placed.offset; });
  if (above == layout.begin()) return nullptr;
  --above;
  return address + bytes <= above->offset + above->bytes ? &*above : nullptr;
}

std::byte* out_of_bounds(Warp& warp, int lane, std::uint64_t address, const Request& request, Space space) {
  report(warp, lane, FindingKind::kOutOfBounds,
         fmt::format("{} of {} bytes outside every variable of {} memory", verb(request.access), request.bytes,
                     name(space)),
         address);
  return nullptr;
}

std::byte* resolve_local(Warp& warp, int lane, std::uint64_t address, const Request& request) {
  const Program& program = *warp.program;
  const Placed* placed = find_placed(program.local, address, request.bytes);
  if (placed == nullptr) return out_of_bounds(warp, lane, address, request, Space::kLocal);
  if (misaligned(warp, lane, address, request, placed->name)) return nullptr;
  const std::uint64_t at = static_cast<std::uint64_t>(lane) * program.local_bytes + address;
  std::uint8_t* written = &warp.local_written[at];
  if (request.access != Access::kWrite && std::find(written, written + request.bytes, 0) != written + request.bytes) {
    report(warp, lane, FindingKind::kUnwrittenRead, "reads local memory that was never written", address, placed->name);
  }
  std::fill(written, written + request.bytes, 1);
  return &warp.local[at];
}

std::byte* resolve_read_only(Warp& warp, int lane, std::uint64_t address, const Request& request, Space space) {
  LaunchState& state = *warp.block->launch;
  const bool constant = space == Space::kConst;
  const std::vector<Placed>& layout = constant ? state.module->constants : state.program->parameters;
  const Placed* placed = find_placed(layout, address, request.bytes);
  if (placed == nullptr) return out_of_bounds(warp, lane, address, request, space);
  if (request.access != Access::kRead) {
    report(warp, lane, FindingKind::kReadOnlyWrite, fmt::format("writes {} memory", name(space)), address,
           placed->name);
    return nullptr;
  }
  if (misaligned(warp, lane, address, request, placed->name)) return nullptr;
  return (constant ? state.variables->constant.data() : state.parameters.data()) + address;
}

Space window_of(std::uint64_t address) {
  if (address < kSharedWindow) return Space::kGlobal;  // no buffer lies there: reported as such
  if (address < kLocalWindow) return Space::kShared;
  if (address < kParamWindow) return Space::kLocal;
  if (address < kConstWindow) return Space::kParam;
  if (address < kConstWindow + kSharedWindow) return Space::kConst;
  return Space::kGlobal;
}

std::uint64_t window_base(Space space) {
  switch (space) {
    case Space::kShared:
      return kSharedWindow;
    case Space::kLocal:
      return kLocalWindow;
    case Space::kParam:
      return kParamWindow;
    case Space::kConst:
      return kConstWindow;
    default:
      return 0;
  }
}

void resolve_generic(Warp& warp, const Request& request, std::uint32_t lanes, const Addresses& addresses,
                     Hosts& hosts) {
  std::uint32_t left = lanes;
  while (left != 0) {
    const Space space = window_of(addresses[std::countr_zero(left)]);
    std::uint32_t same = 0;
    Addresses local;
    for (int lane = 0; lane < kLanes; ++lane) {
      local[lane] = addresses[lane] - window_base(space);
      if ((left >> lane & 1) != 0 && window_of(addresses[lane]) == space) same |= 1u << lane;
    }
    Request inner = request;
    inner.space = space;
    resolve(warp, inner, same, local, hosts);
    left &= ~same;
  }
}

}  // namespace

void gather_addresses(const Warp& warp, const Instruction& in, Addresses& addresses) {
  const auto offset = static_cast<std::uint64_t>(in.immediate);
  if (in.a_width == 8) {
    std::memcpy(addresses, warp.source(in.a), sizeof(addresses));
    for (std::uint64_t& address : addresses) address += offset;
    return;
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    addresses[lane] = static_cast<std::uint32_t>(load_raw(warp, in.a, in.a_width, lane) + offset);
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
  const std::uint64_t offset = address - region->base;
  if (!region->writers.empty()) check_owners(warp, *region, lane, offset, request, data);
  std::vector<std::uint8_t>& touched = request.access == Access::kRead ? region->sectors_read : region->sectors_written;
  for (std::uint64_t sector = offset / 32; sector <= (offset + request.bytes - 1) / 32; ++sector)
    touch(touched[sector]);
  return region->host + offset;
}

Block* block_of_shared(Warp& warp, std::uint64_t address) {
  const std::uint64_t rank = address >> kRankShift;
  if (rank == 0) return warp.block;
  const std::vector<std::unique_ptr<Block>>& blocks = warp.block->cluster->blocks;
  return rank <= blocks.size() ? blocks[rank - 1].get() : nullptr;
}

std::byte* resolve_shared(Warp& warp, int lane, std::uint64_t address, const Request& request, const std::byte* data) {
  Block* home = block_of_shared(warp, address);
  const std::uint64_t offset = address & ((1u << kRankShift) - 1);
  if (home == nullptr || offset + request.bytes > home->shared.size()) {
    report(warp, lane, FindingKind::kOutOfBounds,
           fmt::format("{} of {} bytes outside the block's shared memory", verb(request.access), request.bytes),
           address);
    return nullptr;
  }
  if (misaligned(warp, lane, address, request, {})) return nullptr;
  if (home->live_threads == 0) {
    report(warp, lane, FindingKind::kSharedRace,
           fmt::format("{} of the shared memory of block {} of the cluster, which has exited", verb(request.access),
                       home->rank),
           address);
    return nullptr;
  }
  SharedAccess access(warp, *home, lane, request);
  if (!access.touch(static_cast<std::uint32_t>(offset), data)) return nullptr;
  // Stored at once, so that the next lane's store of the same value is seen to change nothing.
  if (data != nullptr) std::memcpy(&home->shared[offset], data, request.bytes);
  return &home->shared[offset];
}

void count_banks(Warp& warp, std::uint32_t lanes, const Addresses& addresses, std::uint32_t bytes) {
  const int lanes_per_pass = bytes <= 4 ? 32 : bytes <= 8 ? 16 : 8;
  std::uint64_t conflicts = 0;
  for (int begin = 0; begin < kLanes; begin += lanes_per_pass) {
    std::uint64_t words[kLanes];
    std::size_t count = 0;
    for (int lane = begin; lane < begin + lanes_per_pass; ++lane) {
      if ((lanes >> lane & 1) == 0) continue;
      for (std::uint64_t word = addresses[lane] / 4; word <= (addresses[lane] + bytes - 1) / 4 && count < kLanes;
           ++word) {
        words[count++] = word;
      }
    }
    if (!std::is_sorted(words, words + count)) std::sort(words, words + count);
    count = static_cast<std::size_t>(std::unique(words, words + count) - words);
    std::uint8_t banks[32] = {};
    std::uint8_t most = 0;
    for (std::size_t i = 0; i < count; ++i) most = std::max(most, ++banks[words[i] % 32]);
    if (most > 1) conflicts += static_cast<std::uint64_t>(most - 1);
  }
  ++warp.block->counters.shared_requests;
  warp.block->counters.shared_bank_conflicts += conflicts;
}

void resolve(Warp& warp, const Request& request, std::uint32_t lanes, const Addresses& addresses, Hosts& hosts) {
  switch (request.space) {
    case Space::kGlobal:
      return resolve_global_lanes(warp, request, lanes, addresses, hosts);
    case Space::kGeneric:
      return resolve_generic(warp, request, lanes, addresses, hosts);
    case Space::kShared:
    case Space::kSharedCluster:
      count_banks(warp, lanes, addresses, request.bytes);
      break;
    default:
      break;
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    const std::byte* data = request.data == nullptr ? nullptr : request.data + lane * request.stride;
    switch (request.space) {
      case Space::kLocal:
        hosts[lane] = resolve_local(warp, lane, addresses[lane], request);
        break;
      case Space::kParam:
      case Space::kConst:
        hosts[lane] = resolve_read_only(warp, lane, addresses[lane], request, request.space);
        break;
      default:
        hosts[lane] = resolve_shared(warp, lane, addresses[lane], request, data);
        break;
    }
  }
}

}  // namespace fusec::emulator
