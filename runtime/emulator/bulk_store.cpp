#include "runtime/emulator/bulk_store.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <string>

namespace fusec::emulator {
namespace {

// Number of tracked copies per warp. A kernel need not wait for copies; beyond this number the oldest count as ended.
constexpr std::size_t kMostStores = 4096;

void mark_source(Warp& warp, const BulkStore& store, bool sending) {
  for (const BulkStore::Piece& piece : store.sources) {
    Block& home = *block_of_shared(warp, piece.address);
    const std::uint64_t begin = piece.address & ((1u << kRankShift) - 1);
    for (std::uint64_t at = begin; at < begin + piece.bytes; ++at) {
      SharedWord& word = home.shadow[at / 4];
      const unsigned bit = 1u << (at % 4);
      word.sending = (sending ? word.sending | bit : word.sending & ~bit) & 0xfu;
    }
  }
}

// Counts the unfinished copies into each byte, atomically, since blocks on several host threads may share the buffer.
void mark_target(Warp& warp, const BulkStore& store, bool begins) {
  for (const BulkStore::Piece& piece : store.targets) {
    Region& region = *warp.block->launch->find(piece.address);
    if (region.bulk_stores.empty()) continue;
    for (std::uint64_t at = piece.address - region.base; at < piece.address - region.base + piece.bytes; ++at) {
      const std::atomic_ref<std::uint8_t> count(region.bulk_stores[at]);
      if (begins)
        count.fetch_add(1, std::memory_order_relaxed);
      else
        count.fetch_sub(1, std::memory_order_relaxed);
    }
  }
}

// Ends the read of the source. A thread that writes the source later must be ordered after this wait.
void end_read(Warp& warp, BulkStore& store) {
  mark_source(warp, store, false);
  for (const BulkStore::Piece& piece : store.sources) {
    for (std::uint32_t at = 0; at < piece.bytes; at += 16) {
      const std::uint32_t bytes = std::min(16u, piece.bytes - at);
      const Request request{.access = Access::kRead, .space = Space::kShared, .bytes = bytes, .async = true};
      resolve_shared(warp, static_cast<int>(store.lane), piece.address + at, request, nullptr);
    }
  }
  store.sources = {};
  store.source_read = true;
}

}  // namespace

void add_piece(std::vector<BulkStore::Piece>& pieces, std::uint64_t address, std::uint32_t bytes) {
  if (!pieces.empty() && pieces.back().address + pieces.back().bytes == address)
    pieces.back().bytes += bytes;
  else
    pieces.push_back({address, bytes});
}

void begin_bulk_store(Warp& warp, int lane, BulkStore store) {
  store.lane = static_cast<std::uint32_t>(lane);
  store.group = warp.bulk_commits[store.lane];
  mark_source(warp, store, true);
  mark_target(warp, store, true);
  warp.bulk_stores.push_back(std::move(store));
  if (warp.bulk_stores.size() <= kMostStores) return;
  mark_source(warp, warp.bulk_stores.front(), false);
  mark_target(warp, warp.bulk_stores.front(), false);
  warp.bulk_stores.erase(warp.bulk_stores.begin());
}

void end_bulk_stores(Warp& warp, std::uint32_t lanes, std::uint32_t newest, bool read) {
  const auto ends = [&](const BulkStore& store) {
    return (lanes >> store.lane & 1) != 0 && std::uint64_t{store.group} + newest < warp.bulk_commits[store.lane];
  };
  bool any_read = false;
  for (BulkStore& store : warp.bulk_stores) {
    if (!ends(store)) continue;
    if (!store.source_read) {
      end_read(warp, store);
      any_read = true;
    }
    if (!read) mark_target(warp, store, false);
  }
  if (!read) std::erase_if(warp.bulk_stores, ends);
  if (!any_read) return;
  // Other copies may still read the same bytes.
  for (const Warp& other : warp.block->warps) {
    for (const BulkStore& store : other.bulk_stores) {
      if (!store.source_read) mark_source(warp, store, true);
    }
  }
}

void check_sources_at_exit(Warp& warp, std::uint32_t lanes) {
  for (const Warp& other : warp.block->warps) {
    for (const BulkStore& store : other.bulk_stores) {
      if (store.source_read || store.sources.empty()) continue;
      report(warp, std::countr_zero(lanes), FindingKind::kAsyncRead,
             "the block exits while a bulk store of thread " + std::to_string(other.number * kLanes + store.lane) +
                 " still reads its shared memory: no cp.async.bulk.wait_group has come",
             store.sources.front().address);
      return;
    }
  }
}

}  // namespace fusec::emulator
