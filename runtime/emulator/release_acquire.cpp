#include "runtime/emulator/release_acquire.h"

#include <algorithm>
#include <atomic>

namespace fusec::emulator {
namespace {

void join(std::vector<std::uint32_t>& into, const std::vector<std::uint32_t>& from) {
  if (into.empty()) into.assign(from.size(), 0);
  for (std::size_t x = 0; x < from.size(); ++x) into[x] = std::max(into[x], from[x]);
}

}  // namespace

void fence_memory(Warp& warp, bool beyond_block) {
  Block& block = *warp.block;
  if (beyond_block) block.did_fence = true;
  const std::size_t columns = block.columns();
  std::uint32_t* seen = &block.seen_at(warp.number, 0);
  if (!warp.observed.empty()) {
    for (std::size_t x = 0; x < columns; ++x) seen[x] = std::max(seen[x], warp.observed[x]);
    warp.observed.clear();
  }
  warp.releasable.assign(seen, seen + columns);
  warp.releasable[warp.number] = block.now++;
  if (!beyond_block || block.ranks == 0) return;
  for (const std::unique_ptr<Block>& other : block.cluster->blocks) {
    if (other.get() != &block) other->remote_fences[block.rank] = other->now++;
  }
}

void strong_shared_access(Warp& warp, std::uint32_t offset, Access access) {
  Block& block = *warp.block;
  if (warp.releasable.empty() && block.releases.empty()) return;
  const auto found = block.releases.find(offset);
  if (access != Access::kWrite && found != block.releases.end()) join(warp.observed, found->second);
  if (access == Access::kRead) return;
  // An atomic continues the release sequence that it read; a store starts a new one.
  if (access == Access::kWrite && found != block.releases.end()) found->second.clear();
  if (!warp.releasable.empty()) join(block.releases[offset], warp.releasable);
}

void strong_global_access(Block& block) {
  block.did_strong = true;
  if (!block.did_fence || block.did_release) return;
  block.did_release = true;
  std::atomic_ref(block.launch->released[block.owner]).store(1, std::memory_order_relaxed);
}

bool blocks_synchronize(const Block& block, ByteOwner other) {
  const auto code = static_cast<ByteOwner>(other & ~kStrongOwner);
  if (block.cluster->synchronized) {
    for (const std::unique_ptr<Block>& neighbour : block.cluster->blocks) {
      if (neighbour->owner == code) return true;
    }
  }
  if (!block.synchronizes()) return false;
  return code == kMany || std::atomic_ref(block.launch->released[code]).load(std::memory_order_relaxed) != 0;
}

}  // namespace fusec::emulator
