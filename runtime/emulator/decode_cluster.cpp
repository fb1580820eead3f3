// Clusters and proxies: mapa, getctarank, fence.proxy.
#include <algorithm>

#include "runtime/emulator/decode.h"
#include "runtime/emulator/lanes.h"
#include "runtime/emulator/memory.h"

namespace fusec::emulator {
namespace {

// mapa: the same shared address in another block of the cluster.
void map_address(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  const std::uint64_t blocks = warp.block->cluster->blocks.size();
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    const std::uint64_t rank = load_raw(warp, in.b, 4, lane);
    if (rank >= blocks) report(warp, lane, FindingKind::kOutOfBounds, "mapa to a rank that the cluster lacks");
    const std::uint64_t base = in.space == Space::kGeneric ? kSharedWindow : 0;
    const std::uint64_t offset = (load_raw(warp, in.a, in.a_width, lane) - base) & kOffsetMask;
    store_raw(warp, in.d, in.d_width, lane, base + offset + ((rank + 1) << kRankShift));
  }
}

void rank_of_address(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    const std::uint64_t base = in.space == Space::kGeneric ? kSharedWindow : 0;
    const std::uint64_t rank = (load_raw(warp, in.a, in.a_width, lane) - base) >> kRankShift;
    store_raw(warp, in.d, 4, lane, rank == 0 ? warp.block->rank : rank - 1);
  }
}

// fence.proxy.async: later bulk copies and wgmma see what the warp has stored or synchronized with.
void fence_proxy(Warp& warp, const Instruction&, std::uint32_t) {
  Block& block = *warp.block;
  const std::size_t columns = block.columns();
  for (std::size_t x = 0; x < columns; ++x) block.fenced[warp.number * columns + x] = block.seen_at(warp.number, x);
  block.fenced[warp.number * columns + warp.number] = block.now;
  ++block.now;
}

}  // namespace

bool decode_cluster(Decoder& decoder) {
  const std::string_view base = decoder.base();
  Suffixes& suffixes = decoder.suffixes;
  Instruction& out = decoder.out;
  if (base == "mapa" || base == "getctarank") {
    out.kind = InstructionClass::kMove;
    out.space = suffixes.take("shared::cluster") ? Space::kSharedCluster : Space::kGeneric;
    const Type type = suffixes.take_type();
    if (bits(type) != 32 && bits(type) != 64) decoder.unknown();
    const bool maps = base == "mapa";
    decoder.expect_operands(maps ? 3 : 2, maps ? 3 : 2);
    out.handler = maps ? map_address : rank_of_address;
    out.d_width = static_cast<std::uint8_t>(maps ? bytes(type) : 4);
    out.d = decoder.destination(decoder.operand(0), out.d_width);
    out.a = decoder.source_any(decoder.operand(1), type, out.a_width);
    if (maps) out.b = decoder.source(decoder.operand(2), Type::kB32);
    return true;
  }
  if (base == "fence" && suffixes.take("proxy")) {
    out.kind = InstructionClass::kBarrier;
    const bool async = suffixes.has("async") || suffixes.has("async::generic") || suffixes.has("async.shared::cta");
    out.handler = async ? fence_proxy : nothing;
    for (std::string_view word : {"async", "async.shared::cta", "async::generic", "alias", "tensormap::generic",
                                  "acquire", "release", "cta", "cluster", "gpu", "sys", "global", "shared::cta",
                                  "shared::cluster", "sync_restrict::shared::cta", "sync_restrict::shared::cluster"}) {
      suffixes.take(word);
    }
    return true;
  }
  return false;
}

}  // namespace fusec::emulator
