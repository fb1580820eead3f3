// Accesses to shared memory of a block and its cluster: checks bounds, races, asynchronous copies and proxies.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "runtime/emulator/access_parts.h"
#include "runtime/emulator/release_acquire.h"

namespace fusec::emulator {
namespace {

std::uint16_t thread_of(const Warp& warp, int lane) {
  return static_cast<std::uint16_t>(warp.number * kLanes + lane);
}

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
    if (request.strong || request.access == Access::kAtomic) strong_global_access(*warp.block);
    if (!request.async) home.remote_times[warp.block->rank] = home.now;
    races_ = races_ && !home.synchronizes() && !warp.block->synchronizes();
  }

  // Checks and records the access. Returns false if it must not be executed.
  bool touch(std::uint32_t offset, const std::byte* data) {
    const std::uint32_t end = offset + request_.bytes;
    begin_ = offset;
    for (std::uint32_t at = offset; at < end;) {
      const std::uint32_t stop = std::min(end, (at | 3u) + 1);
      const auto mask = static_cast<std::uint8_t>(((1u << (stop - at)) - 1) << (at % 4));
      SharedWord& word = home_.shadow[at / 4];
      if ((word.allocated & mask) != mask) {
        finding(FindingKind::kOutOfBounds,
                fmt::format("{} of {} bytes outside the block's shared memory", verb(), request_.bytes), at);
        return false;
      }
      if ((word.pending & mask) != 0 && request_.copy == Request::Copy::kNone) {
        finding(FindingKind::kAsyncRead, "touches bytes that an asynchronous copy has not yet been waited for", at);
      }
      if ((word.sending & mask) != 0 && request_.access != Access::kRead) {
        finding(FindingKind::kAsyncRead,
                "writes over what a bulk store still reads: no cp.async.bulk.wait_group has come yet", at);
      }
      if (word.mbarrier && request_.access == Access::kWrite) {
        word.mbarrier = false;  // report once
        finding(FindingKind::kSharedRace, "stores into an mbarrier that has not been invalidated", at);
      }
      if (word.product && request_.access != Access::kRead) check_products(word, at);
      if (request_.product) word.product = true;
      if (request_.access == Access::kRead)
        read(word, mask, at);
      else if (request_.copy == Request::Copy::kIssued)
        check_copy(word, mask, at, data + (at - offset), stop - at);
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

  std::string variable_at(std::uint32_t at) const {
    std::string variable;
    const Program& program = *warp_.program;
    for (const Placed& placed : program.shared) {
      // Count the guard gap after a variable as part of it.
      if (at >= placed.offset && at < placed.offset + placed.bytes + 128) variable = placed.name;
    }
    if (at >= program.dynamic_shared_offset && program.dynamic_shared_offset < home_.shared.size()) {
      variable = "dynamic shared memory";
    }
    return variable;
  }

  void finding(FindingKind kind, std::string message, std::uint32_t at) const {
    if (reported_before(warp_, lane_, kind)) return;
    report(warp_, lane_, kind, std::move(message), at, variable_at(at));
  }

  // A load reads unwritten bytes of one word.
  void unwritten(SharedWord& word, std::uint8_t mask, std::uint32_t at) const {
    const char* text = "reads shared memory that nobody has written";
    if (request_.into_registers) {
      const std::uint64_t bytes = static_cast<std::uint64_t>(mask & ~word.written) >> (at % 4);
      note_unwritten(warp_, lane_, bytes << (at - begin_), text, at, variable_at(at));
    } else {
      finding(FindingKind::kUnwrittenRead, text, at);
      word.written |= mask;  // report once
    }
  }

  void check_products(SharedWord& word, std::uint32_t at) const {
    for (const Warp& warp : home_.warps) {
      if (!product_reads(warp, at)) continue;
      finding(FindingKind::kAsyncRead, "writes over what a wgmma still reads: no wgmma.wait_group has come yet", at);
      return;
    }
    word.product = false;
  }

  bool ordered(std::size_t column, std::uint32_t time) const { return home_.seen_at(row_, column) >= time; }

  // Whether bar.warp.sync, for a part of the warp, orders an access of another lane before this one.
  bool ordered_lane(int other, std::uint32_t time) const {
    return !warp_.lane_seen.empty() && warp_.lane_seen[static_cast<std::size_t>(lane_ * kLanes + other)] >= time;
  }

  std::size_t column_of(std::uint16_t thread) const {
    if (thread == kAsyncWriter) return home_.warps.size();
    return thread >= kRemoteThread ? home_.column_of_rank(thread - kRemoteThread) : thread / kLanes;
  }

  bool unordered_writer(const SharedWord& word, std::uint8_t mask) const {
    if ((word.written_bytes & mask) == 0 || word.writer == thread_) return false;
    if (ordered(column_of(word.writer), word.write_time)) return false;
    const bool own_warp = !remote_ && word.writer / kLanes == warp_.number;
    return !own_warp || !ordered_lane(word.writer % kLanes, word.write_time);
  }

  // A store of a thread and a later access through the async proxy (bulk copy, wgmma) need a fence.proxy.async between
  // them. The writer, the issuer, or a warp ordered between the two may execute it.
  void check_proxy(const SharedWord& word, std::uint8_t mask, std::uint32_t at) const {
    if (remote_ || word.writer >= kRemoteThread || (word.written_bytes & mask) == 0) return;
    const std::size_t writer = word.writer / kLanes, columns = home_.columns();
    if (home_.fenced[writer * columns + writer] >= word.write_time) return;
    for (std::size_t w = 0; w < home_.warps.size(); ++w) {
      const std::uint32_t* fence = &home_.fenced[w * columns];
      if (fence[writer] >= word.write_time && (w == writer || w == warp_.number || ordered(w, fence[w]))) return;
    }
    finding(FindingKind::kProxyFence,
            request_.access == Access::kRead
                ? "reads asynchronously what threads stored, without fence.proxy.async between"
                : "writes asynchronously over what threads stored, without fence.proxy.async between",
            at);
  }

  void race(const char* what, std::uint32_t at, std::uint32_t other) const {
    if (reported_before(warp_, lane_, FindingKind::kSharedRace)) return;
    std::string who = other == kSeveralReaders ? "other threads"
                      : other == kAsyncWriter  ? "an asynchronous copy"
                      : other >= kRemoteThread ? fmt::format("block {} of the cluster", other - kRemoteThread)
                      : remote_                ? fmt::format("thread {} of block {} of the cluster", other, home_.rank)
                                               : fmt::format("thread {}", other);
    finding(FindingKind::kSharedRace, fmt::format("{} {} without a barrier between", what, who), at);
  }

  void read(SharedWord& word, std::uint8_t mask, std::uint32_t at) {
    if ((word.written & mask) != mask) unwritten(word, mask, at);
    if (!races_) return;
    if (unordered_writer(word, mask) && !(request_.strong && word.strong_write)) {
      if (word.writer == kAsyncWriter) {
        finding(FindingKind::kAsyncRead, "reads what a bulk copy brings without waiting for its mbarrier", at);
      } else {
        race("reads what was written by", at, word.writer);
      }
    }
    if (request_.async_proxy) check_proxy(word, mask, at);
    const std::uint8_t reader = own_reader();
    if (!word.reading.is(reader, home_.now, mask)) {
      if (word.reading.lanes != 0) forget_readings(word, mask);
      home_.readings.bring_forward(word.reading, reader, home_.now, mask);
    }
    word.reading.lanes |= own_lane();
  }

  std::uint8_t own_reader() const {
    return static_cast<std::uint8_t>(remote_ ? kRemoteReader + warp_.block->rank : warp_.number);
  }
  std::uint32_t own_lane() const { return remote_ ? 1 : 1u << lane_; }
  std::size_t column_of_reader(const Reading& reading) const {
    return reading.reader < kRemoteReader ? reading.reader : home_.column_of_rank(reading.reader - kRemoteReader);
  }

  // Removes readings that happen before the new one: an access ordered after the new one is ordered after them too.
  void forget_readings(SharedWord& word, std::uint8_t mask) const {
    home_.readings.drop(word.reading, [&](Reading& reading) {
      if ((reading.bytes & ~mask) != 0 || reading.is(own_reader(), home_.now, mask)) return false;
      if (ordered(column_of_reader(reading), reading.time)) return true;
      if (reading.reader == own_reader()) reading.lanes &= ~own_lane();
      return reading.lanes == 0;
    });
  }

  void write(SharedWord& word, std::uint8_t mask, std::uint32_t at, const std::byte* data, std::uint32_t bytes) {
    const bool changes =
        data == nullptr || (word.written & mask) != mask || std::memcmp(&home_.shared[at], data, bytes) != 0;
    if (changes && request_.access == Access::kWrite) home_.changed = true;
    if (request_.access == Access::kAtomic && (word.written & mask) != mask) {
      finding(FindingKind::kUnwrittenRead, "updates shared memory that nobody has written", at);
    }
    if (races_ && request_.async_proxy) check_proxy(word, mask, at);
    if (races_ && changes && request_.copy == Request::Copy::kNone) {
      const bool strong = request_.strong || request_.access == Access::kAtomic;
      if (unordered_writer(word, mask) && !(strong && word.strong_write)) {
        race("writes over what was written by", at, word.writer);
      }
      if (!strong) check_readers(word, mask, at);
    }
    const bool same = word.writer == thread_ && word.write_time == home_.now;
    // An atomic after a plain store of the same thread does not hide that store from other threads' atomics.
    if (same && request_.access == Access::kAtomic && !word.strong_write && (word.written_bytes & mask) == mask) return;
    word.written_bytes = same ? word.written_bytes | mask : mask;
    word.written |= mask;
    word.writer = thread_;
    word.write_time = home_.now;
    word.strong_write = request_.strong || request_.access == Access::kAtomic;
    home_.readings.clear(word.reading);
  }

  // Checks a newly issued cp.async, which may write from now on. Several threads may write equal bytes.
  void check_copy(const SharedWord& word, std::uint8_t mask, std::uint32_t at, const std::byte* data,
                  std::uint32_t bytes) const {
    if ((word.pending & mask) != 0 && meets_other_copy(at, data, bytes)) {
      finding(FindingKind::kSharedRace, "writes over what another asynchronous copy under way writes", at);
    }
    if (!races_) return;
    const bool changes = (word.written & mask) != mask || std::memcmp(&home_.shared[at], data, bytes) != 0;
    if (changes && unordered_writer(word, mask)) race("writes over what was written by", at, word.writer);
    check_readers(word, mask, at);
  }

  bool meets_other_copy(std::uint32_t at, const std::byte* data, std::uint32_t bytes) const {
    for (const Warp& warp : home_.warps) {
      for (const AsyncCopy& copy : warp.copies) {
        const bool own = &warp == &warp_ && copy.lane == static_cast<std::uint32_t>(lane_);
        for (std::uint32_t i = at; i < at + bytes; ++i) {
          if (i < copy.shared || i >= copy.shared + copy.bytes) continue;
          if (own || copy.data[i - copy.shared] != data[i - at]) return true;
        }
      }
    }
    return false;
  }

  void check_readers(const SharedWord& word, std::uint8_t mask, std::uint32_t at) const {
    std::uint32_t found = 0, other = 0;
    home_.readings.each(word.reading, [&](const Reading& reading) {
      if ((reading.bytes & mask) == 0 || ordered(column_of_reader(reading), reading.time)) return;
      const std::uint32_t lanes = unordered_lanes(reading);
      if (lanes == 0) return;
      found += static_cast<std::uint32_t>(std::popcount(lanes));
      other = reading.reader < kRemoteReader
                  ? reading.reader * kLanes + static_cast<std::uint32_t>(std::countr_zero(lanes))
                  : static_cast<std::uint32_t>(kRemoteThread) + (reading.reader - kRemoteReader);
    });
    if (found != 0) race("writes over what was read by", at, found == 1 ? other : kSeveralReaders);
  }

  // The other lanes of a reading that are not ordered before this access within the warp.
  std::uint32_t unordered_lanes(const Reading& reading) const {
    std::uint32_t lanes = reading.lanes;
    if (reading.reader != own_reader()) return lanes;
    if (remote_) return 0;
    if (thread_ != kAsyncWriter) lanes &= ~own_lane();
    if (warp_.lane_seen.empty()) return lanes;
    for (int lane = 0; lane < kLanes; ++lane) {
      if (ordered_lane(lane, reading.time)) lanes &= ~(1u << lane);
    }
    return lanes;
  }

  Warp& warp_;
  Block& home_;
  int lane_;
  const Request& request_;
  bool remote_;      // the memory belongs to another block of the cluster
  std::size_t row_;  // row of home_.seen for this access
  std::uint16_t thread_;
  bool races_ = false;
  std::uint32_t begin_ = 0;  // offset of the access
};

}  // namespace

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
  if (home != warp.block && !home->cluster->synchronized) {
    report(warp, lane, FindingKind::kSharedRace,
           fmt::format("{} of the shared memory of block {} of the cluster, which may not have started: no barrier of "
                       "the cluster has come yet",
                       verb(request.access), home->rank),
           address);
  }
  SharedAccess access(warp, *home, lane, request);
  if (!access.touch(static_cast<std::uint32_t>(offset), data)) return nullptr;
  if (request.strong && home == warp.block && !request.async) {
    strong_shared_access(warp, static_cast<std::uint32_t>(offset), request.access);
  }
  // Store now, so that the next lane's store of an equal value counts as no change.
  if (data != nullptr && request.copy != Request::Copy::kIssued)
    std::memcpy(&home->shared[offset], data, request.bytes);
  return &home->shared[offset];
}

}  // namespace fusec::emulator
