// ld, st and related instructions: all spaces, widths, vectors, cache hints and memory orders.
#include <bit>
#include <set>

#include "runtime/emulator/access.h"
#include "runtime/emulator/decode.h"
#include "runtime/emulator/lanes.h"
#include "runtime/emulator/reduce_value.h"
#include "runtime/emulator/release_acquire.h"

namespace fusec::emulator {
namespace {

constexpr std::uint32_t kMaxAccess = 64;  // bytes per lane; .v8.b32 and .v4.b64 have 32

// Stores a value in one lane of a register, which may be wider.
void put_element(Warp& warp, const Operand& to, int lane, const std::byte* from, std::uint32_t size, bool extend) {
  std::byte* target = warp.lanes(to.slot) + lane * to.width;
  std::memcpy(target, from, size);
  if (to.width == size) return;
  const bool negative = extend && (std::to_integer<unsigned>(from[size - 1]) & 0x80u) != 0;
  std::memset(target + size, negative ? 0xff : 0, to.width - size);
}

template <std::uint32_t kSize>
void put_all(Warp& warp, const Operand& to, const Hosts& hosts, std::uint32_t offset, std::uint32_t lanes) {
  std::byte* target = warp.lanes(to.slot);
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) != 0) std::memcpy(target + lane * kSize, hosts[lane] + offset, kSize);
  }
}

void load(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  Addresses addresses;
  gather_addresses(warp, in, addresses);
  Hosts hosts = {};
  resolve(warp,
          {.access = Access::kRead,
           .space = in.space,
           .bytes = in.bytes,
           .strong = in.strong,
           .into_registers = true,
           .constant = in.option},
          lanes, addresses, hosts);
  if (in.acquires) fence_memory(warp, in.beyond_block);
  alignas(16) static constexpr std::byte kZeros[kMaxAccess] = {};
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) != 0 && hosts[lane] == nullptr) hosts[lane] = const_cast<std::byte*>(kZeros);
  }
  const std::uint32_t size = in.bytes / in.count;
  for (std::uint32_t element = 0; element < in.count; ++element) {
    const Operand& to = warp.program->lists[in.list + element];
    if (to.width == size && size == 4)
      put_all<4>(warp, to, hosts, element * 4, lanes);
    else if (to.width == size && size == 8)
      put_all<8>(warp, to, hosts, element * 8, lanes);
    else if (to.width == size && size == 2)
      put_all<2>(warp, to, hosts, element * 2, lanes);
    else {
      for (int lane = 0; lane < kLanes; ++lane) {
        if ((lanes >> lane & 1) != 0)
          put_element(warp, to, lane, hosts[lane] + element * size, size, is_signed(in.type));
      }
    }
  }
  if (!warp.undefined.reads.empty() || warp.undefined.any()) note_loaded(warp, in, size, lanes);
}

void store(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  Addresses addresses;
  gather_addresses(warp, in, addresses);
  alignas(16) std::byte data[kLanes * kMaxAccess];
  const std::uint32_t size = in.bytes / in.count;
  for (std::uint32_t element = 0; element < in.count; ++element) {
    const Operand& from = warp.program->lists[in.list + element];
    const std::byte* source = warp.source(from.slot);
    for (int lane = 0; lane < kLanes; ++lane) {
      std::memcpy(data + static_cast<std::uint32_t>(lane) * in.bytes + element * size, source + lane * from.width,
                  size);
    }
  }
  Hosts hosts = {};
  if (in.releases) fence_memory(warp, in.beyond_block);
  resolve(warp,
          {.access = Access::kWrite,
           .space = in.space,
           .bytes = in.bytes,
           .strong = in.strong,
           .data = data,
           .stride = in.bytes},
          lanes, addresses, hosts);
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) != 0 && hosts[lane] != nullptr) {
      std::memcpy(hosts[lane], data + static_cast<std::uint32_t>(lane) * in.bytes, in.bytes);
    }
  }
}

void fence_lanes(Warp& warp, const Instruction& in, std::uint32_t) {
  fence_memory(warp, in.beyond_block);
}

void convert_address(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  const auto base = static_cast<std::uint64_t>(in.immediate);
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    const std::uint64_t from = load_raw(warp, in.a, in.a_width, lane);
    store_raw(warp, in.d, in.d_width, lane, in.option ? from - base : from + base);
  }
}

std::uint64_t window(Space space) {
  switch (space) {
    case Space::kShared:
    case Space::kSharedCluster:
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

bool in_space(std::uint64_t address, Space space) {
  if (space == Space::kGlobal) return address >= kConstWindow + kSharedWindow;
  const std::uint64_t base = window(space);
  const bool inside = address >= base && address < base + kSharedWindow;
  return inside && (space != Space::kShared || address - base < (std::uint64_t{1} << kRankShift));
}

void is_space(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  std::uint32_t result = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    if (in_space(load_raw(warp, in.a, in.a_width, lane), in.space)) result |= 1u << lane;
  }
  store_predicate(warp, in.d, result, lanes);
}

std::optional<Space> take_memory_space(Suffixes& suffixes) {
  if (suffixes.take("global")) return Space::kGlobal;
  if (suffixes.take("shared") || suffixes.take("shared::cta")) return Space::kShared;
  if (suffixes.take("shared::cluster")) return Space::kSharedCluster;
  if (suffixes.take("local")) return Space::kLocal;
  if (suffixes.take("param") || suffixes.take("param::entry") || suffixes.take("param::func")) return Space::kParam;
  if (suffixes.take("const")) return Space::kConst;
  return std::nullopt;
}

bool take_scope(Suffixes& suffixes) {
  return suffixes.take("cta") || suffixes.take("cluster") || suffixes.take("gpu") || suffixes.take("sys");
}

// Takes cache hints, which do not affect values. Returns whether a cache policy operand follows.
bool take_cache_hints(Suffixes& suffixes) {
  for (std::string_view hint : {"ca",
                                "cg",
                                "cs",
                                "lu",
                                "cv",
                                "wb",
                                "wt",
                                "nc",
                                "L1::evict_normal",
                                "L1::evict_unchanged",
                                "L1::evict_first",
                                "L1::evict_last",
                                "L1::no_allocate",
                                "L2::64B",
                                "L2::128B",
                                "L2::256B",
                                "L2::evict_first",
                                "L2::evict_last",
                                "L2::evict_normal",
                                "unified"}) {
    suffixes.take(hint);
  }
  return suffixes.take("L2::cache_hint");
}

void decode_load_store(Decoder& decoder, bool is_load) {
  Suffixes& suffixes = decoder.suffixes;
  Instruction& out = decoder.out;
  out.kind = InstructionClass::kLoadStore;
  out.handler = is_load ? load : store;
  suffixes.take("weak");
  out.acquires = suffixes.take("acquire");
  out.releases = suffixes.take("release");
  out.strong = out.acquires || out.releases || suffixes.take("volatile") || suffixes.take("relaxed");
  if (suffixes.take("mmio")) out.strong = true;
  out.beyond_block = !suffixes.has("cta");
  if (out.strong) take_scope(suffixes);
  out.option = is_load && suffixes.has("nc");
  const bool hinted = take_cache_hints(suffixes);
  out.space = take_memory_space(suffixes).value_or(Space::kGeneric);
  int elements = 1;
  for (const auto& [word, count] : {std::pair{"v2", 2}, {"v4", 4}, {"v8", 8}}) {
    if (suffixes.take(word)) elements = count;
  }
  out.type = suffixes.take_type();
  if (out.type == Type::kNone || bits(out.type) < 8) decoder.unknown();
  const std::size_t least = 2 + (hinted ? 1 : 0);
  decoder.expect_operands(least, least);
  const PtxOperand& value = decoder.operand(is_load ? 0 : 1);
  const PtxOperand& where = decoder.operand(is_load ? 1 : 0);
  out.space = decoder.address(where, out.space);
  const bool vector = value.kind == PtxOperand::Kind::kVector;
  if (vector != (elements > 1) && !(vector && value.parts.size() == 1))
    decoder.fail("the operand does not match the vector width");
  if (vector && value.parts.size() != static_cast<std::size_t>(elements)) {
    decoder.fail("the operand does not match the vector width");
  }
  const int size = bytes(out.type);
  if (static_cast<std::uint32_t>(size * elements) > kMaxAccess) decoder.unknown();
  std::vector<std::pair<Slot, std::uint8_t>> slots;
  for (int i = 0; i < elements; ++i) {
    const PtxOperand& part = vector ? value.parts[static_cast<std::size_t>(i)] : value;
    std::uint8_t width = 0;
    const Slot slot = is_load ? decoder.destination(part, size, width) : decoder.source_any(part, out.type, width);
    slots.emplace_back(slot, width);
  }
  decoder.begin_list();
  for (const auto& [slot, width] : slots) decoder.add_to_list(slot, width);
  out.bytes = static_cast<std::uint16_t>(size * elements);
}

void decode_cvta(Decoder& decoder) {
  Instruction& out = decoder.out;
  out.kind = InstructionClass::kMove;
  out.handler = convert_address;
  out.option = decoder.suffixes.take("to");
  const std::optional<Space> space = take_memory_space(decoder.suffixes);
  const Type type = decoder.suffixes.take_type();
  if (!space || (type != Type::kU64 && type != Type::kU32)) decoder.unknown();
  decoder.expect_operands(2, 2);
  if (type == Type::kU32) decoder.fail("32-bit addresses are not supported");
  out.immediate = static_cast<std::int64_t>(window(*space));
  out.d = decoder.destination(decoder.operand(0), 8);
  out.a = decoder.source(decoder.operand(1), type);
  out.d_width = out.a_width = 8;
}

void decode_isspacep(Decoder& decoder) {
  Instruction& out = decoder.out;
  const std::optional<Space> space = take_memory_space(decoder.suffixes);
  if (!space) decoder.unknown();
  decoder.expect_operands(2, 2);
  out.kind = InstructionClass::kMove;
  out.handler = is_space;
  out.space = *space;
  out.d = decoder.predicate_destination(decoder.operand(0));
  out.a = decoder.source(decoder.operand(1), Type::kB64);
  out.a_width = 8;
}

}  // namespace

void relax_first_guesses(Program& program) {
  std::set<std::pair<Slot, std::int64_t>> addresses;
  std::set<Slot> compared;
  for (const Instruction& in : program.code) {
    if (in.kind != InstructionClass::kAtomic || in.mode != static_cast<std::uint16_t>(ReduceOp::kCas)) continue;
    addresses.emplace(in.a, in.immediate);
    compared.insert(program.lists[in.list + (in.option ? 1u : 0u)].slot);
  }
  if (addresses.empty()) return;
  for (Instruction& in : program.code) {
    if (in.handler != load) continue;
    if (addresses.contains({in.a, in.immediate}) || (in.count == 1 && compared.contains(program.lists[in.list].slot)))
      in.strong = true;
  }
}

bool decode_memory(Decoder& decoder) {
  const std::string_view base = decoder.base();
  if (base == "ld" || base == "ldu")
    decode_load_store(decoder, true);
  else if (base == "st" && !decoder.suffixes.has("async"))
    decode_load_store(decoder, false);
  else if (base == "cvta")
    decode_cvta(decoder);
  else if (base == "isspacep")
    decode_isspacep(decoder);
  else if (base == "membar" || base == "fence") {
    // fence.proxy.* is decoded in decode_cluster.cpp.
    if (decoder.suffixes.has("proxy")) return false;
    decoder.out.beyond_block = !decoder.suffixes.has("cta");
    for (std::string_view word :
         {"sc", "acq_rel", "acquire", "release", "cta", "cluster", "gpu", "sys", "gl", "sync_restrict::shared::cta",
          "sync_restrict::shared::cluster", "mbarrier_init", "op_restrict"}) {
      decoder.suffixes.take(word);
    }
    decoder.out.kind = InstructionClass::kBarrier;
    decoder.out.handler = fence_lanes;
  } else if (base == "prefetch" || base == "prefetchu" || base == "discard" || base == "applypriority") {
    for (std::string_view word :
         {"global", "local", "const", "param", "tensormap", "L1", "L2", "L2::evict_normal", "L2::evict_last"}) {
      decoder.suffixes.take(word);
    }
    decoder.out.kind = InstructionClass::kLoadStore;
    decoder.out.handler = nothing;
  } else if (base == "createpolicy") {  // policies only affect caches, so any value will do
    Suffixes& suffixes = decoder.suffixes;
    if (!suffixes.take("fractional") && !suffixes.take("range")) decoder.unknown();
    for (std::string_view word :
         {"L2::evict_last", "L2::evict_normal", "L2::evict_first", "L2::evict_unchanged", "global", "b64"}) {
      // The policies for hits and for misses may use the same word.
      while (suffixes.take(word)) continue;
    }
    decoder.out.kind = InstructionClass::kMove;
    decoder.out.handler = convert_address;
    decoder.out.d = decoder.destination(decoder.operand(0), 8);
    decoder.out.a = decoder.constant(0, 8);
    decoder.out.d_width = decoder.out.a_width = 8;
  } else {
    return false;
  }
  return true;
}

}  // namespace fusec::emulator
