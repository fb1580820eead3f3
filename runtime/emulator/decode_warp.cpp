// Instructions between the lanes of a warp: shfl vote match redux activemask elect, bar.warp.sync.
#include <algorithm>
#include <bit>
#include <cmath>

#include "runtime/emulator/decode.h"
#include "runtime/emulator/lanes.h"
#include "runtime/emulator/synchronization.h"

namespace fusec::emulator {
namespace {

enum class Shuffle : std::uint16_t { kUp, kDown, kButterfly, kIndex };

void shuffle(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  const Lanes<std::uint32_t> a = load_lanes<std::uint32_t>(warp, in.a), b = load_lanes<std::uint32_t>(warp, in.b),
                             c = load_lanes<std::uint32_t>(warp, in.c);
  Lanes<std::uint32_t> result;
  std::uint32_t valid = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    result.at[lane] = a.at[lane];
    if ((lanes >> lane & 1) == 0) continue;
    const int by = static_cast<int>(b.at[lane] & 31), clamp = static_cast<int>(c.at[lane] & 31);
    const int segment = static_cast<int>((c.at[lane] >> 8) & 31);
    const int last = (lane & segment) | (clamp & ~segment), first = lane & segment;
    int from = 0;
    bool good = false;
    switch (static_cast<Shuffle>(in.mode)) {
      case Shuffle::kUp:
        from = lane - by;
        good = from >= last;
        break;
      case Shuffle::kDown:
        from = lane + by;
        good = from <= last;
        break;
      case Shuffle::kButterfly:
        from = lane ^ by;
        good = from <= last;
        break;
      case Shuffle::kIndex:
        from = first | (by & ~segment);
        good = from <= last;
        break;
    }
    if (!good)
      from = lane;
    else
      valid |= 1u << lane;
    if ((lanes >> from & 1) == 0) {
      report(warp, lane, FindingKind::kWarpSync,
             "shfl reads lane " + std::to_string(from) + ", which does not take part");
    }
    result.at[lane] = a.at[from];
  }
  store_lanes(warp, in.d, result, lanes);
  if (in.e != kNoSlot) store_predicate(warp, in.e, valid, lanes);
}

// The lanes that a lane exchanges values with: its own member mask, limited to the executing lanes.
std::uint32_t members_of(const Warp& warp, const Instruction& in, int lane, std::uint32_t lanes) {
  if (in.members == kNoSlot) return lanes;
  return static_cast<std::uint32_t>(load_raw(warp, in.members, 4, lane)) & lanes;
}

enum class Vote : std::uint16_t { kAll, kAny, kUni, kBallot };

void vote(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  const std::uint32_t a = load_predicate(warp, in.a);
  std::uint32_t result = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    const std::uint32_t members = members_of(warp, in, lane, lanes);
    const std::uint32_t yes = a & members;
    switch (static_cast<Vote>(in.mode)) {
      case Vote::kAll:
        result |= static_cast<std::uint32_t>(yes == members) << lane;
        break;
      case Vote::kAny:
        result |= static_cast<std::uint32_t>(yes != 0) << lane;
        break;
      case Vote::kUni:
        result |= static_cast<std::uint32_t>(yes == 0 || yes == members) << lane;
        break;
      case Vote::kBallot:
        store_raw(warp, in.d, 4, lane, yes);
        break;
    }
  }
  if (static_cast<Vote>(in.mode) != Vote::kBallot) store_predicate(warp, in.d, result, lanes);
}

void match(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  std::uint32_t same_all = 0;
  std::uint32_t masks[kLanes] = {};
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    const std::uint32_t members = members_of(warp, in, lane, lanes);
    const std::uint64_t value = load_raw(warp, in.a, in.a_width, lane);
    for (int other = 0; other < kLanes; ++other) {
      if ((members >> other & 1) != 0 && load_raw(warp, in.a, in.a_width, other) == value) masks[lane] |= 1u << other;
    }
    if (masks[lane] == members)
      same_all |= 1u << lane;
    else if (in.option)
      masks[lane] = 0;  // match.all
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) != 0) store_raw(warp, in.d, 4, lane, masks[lane]);
  }
  if (in.e != kNoSlot) store_predicate(warp, in.e, same_all, lanes);
}

enum class Reduce : std::uint16_t { kAdd, kMin, kMax, kAnd, kOr, kXor };

std::uint32_t reduce_pair(Reduce how, Type type, bool nan, std::uint32_t a, std::uint32_t b) {
  const bool sign = type == Type::kS32;
  const auto less = [&](std::uint32_t x, std::uint32_t y) {
    return sign ? static_cast<std::int32_t>(x) < static_cast<std::int32_t>(y) : x < y;
  };
  if (type == Type::kF32) {
    const float x = std::bit_cast<float>(a), y = std::bit_cast<float>(b);
    if (x != x || y != y) {
      if (nan || (x != x && y != y)) return 0x7fffffffu;
      return x != x ? b : a;
    }
    const bool a_less = x == y ? std::signbit(x) : x < y;
    return a_less == (how == Reduce::kMin) ? a : b;
  }
  switch (how) {
    case Reduce::kAdd:
      return a + b;
    case Reduce::kMin:
      return less(b, a) ? b : a;
    case Reduce::kMax:
      return less(a, b) ? b : a;
    case Reduce::kAnd:
      return a & b;
    case Reduce::kOr:
      return a | b;
    case Reduce::kXor:
      return a ^ b;
  }
  return a;
}

void reduce(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  const Lanes<std::uint32_t> a = load_lanes<std::uint32_t>(warp, in.a);
  Lanes<std::uint32_t> result = a;
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    const std::uint32_t members = members_of(warp, in, lane, lanes);
    bool first = true;
    std::uint32_t value = 0;
    for (int other = 0; other < kLanes; ++other) {
      if ((members >> other & 1) == 0) continue;
      std::uint32_t next = a.at[other];
      if (in.saturate) next &= 0x7fffffffu;  // .abs
      value = first ? next : reduce_pair(static_cast<Reduce>(in.mode), in.type, in.flush, value, next);
      first = false;
    }
    result.at[lane] = value;
  }
  store_lanes(warp, in.d, result, lanes);
}

void active_mask(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) != 0) store_raw(warp, in.d, 4, lane, lanes);
  }
}

void elect(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  const int leader = std::countr_zero(lanes);
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) != 0 && in.d != kNoSlot) store_raw(warp, in.d, 4, lane, static_cast<std::uint64_t>(leader));
  }
  store_predicate(warp, in.e, 1u << leader, lanes);
}

// bar.warp.sync. Lanes with different masks are ordered only with the lanes of their own mask. Lanes that wait at
// another pc have their mask in another register; it equals that of the lanes here.
void sync(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  const auto members_of = [&](int lane) { return static_cast<std::uint32_t>(load_raw(warp, in.members, 4, lane)); };
  for (std::uint32_t left = lanes; left != 0; left &= left - 1) {
    const std::uint32_t members = members_of(std::countr_zero(left));
    if ((lanes & ~members) == 0) return synchronize_warp(warp, members);
  }
  while (lanes != 0) {
    const std::uint32_t members = members_of(std::countr_zero(lanes));
    synchronize_warp(warp, members);
    lanes &= ~members & (lanes - 1);
  }
}

bool decode_shuffle(Decoder& decoder) {
  if (decoder.base() != "shfl") return false;
  Instruction& out = decoder.out;
  const bool synced = decoder.suffixes.take("sync");
  constexpr std::string_view kModes[] = {"up", "down", "bfly", "idx"};
  bool found = false;
  for (std::uint16_t i = 0; i < 4; ++i) {
    if (!decoder.suffixes.take(kModes[i])) continue;
    out.mode = i;
    found = true;
  }
  if (!found || bits(decoder.suffixes.take_type()) != 32) decoder.unknown();
  decoder.expect_operands(synced ? 5 : 4, synced ? 5 : 4);
  out.handler = shuffle;
  const PtxOperand* destination = &decoder.operand(0);
  if (destination->kind == PtxOperand::Kind::kPair) {
    out.e = decoder.predicate_destination(destination->parts[1]);
    destination = &destination->parts[0];
  }
  out.d = decoder.destination(*destination, 4);
  out.a = decoder.source(decoder.operand(1), Type::kB32);
  out.b = decoder.source(decoder.operand(2), Type::kB32);
  out.c = decoder.source(decoder.operand(3), Type::kB32);
  out.control = synced ? Control::kWarpSync : Control::kStraight;
  if (synced) out.members = decoder.source(decoder.operand(4), Type::kB32);
  return true;
}

bool decode_vote(Decoder& decoder) {
  if (decoder.base() != "vote") return false;
  Instruction& out = decoder.out;
  const bool synced = decoder.suffixes.take("sync");
  constexpr std::string_view kModes[] = {"all", "any", "uni", "ballot"};
  bool found = false;
  for (std::uint16_t i = 0; i < 4; ++i) {
    if (!decoder.suffixes.take(kModes[i])) continue;
    out.mode = i;
    found = true;
  }
  if (!found) decoder.unknown();
  decoder.suffixes.take_type();
  decoder.expect_operands(synced ? 3 : 2, synced ? 3 : 2);
  out.handler = vote;
  const bool ballot = static_cast<Vote>(out.mode) == Vote::kBallot;
  out.d = ballot ? decoder.destination(decoder.operand(0), 4) : decoder.predicate_destination(decoder.operand(0));
  out.a = decoder.predicate_source(decoder.operand(1));
  out.control = synced ? Control::kWarpSync : Control::kStraight;
  if (synced) out.members = decoder.source(decoder.operand(2), Type::kB32);
  return true;
}

bool decode_match(Decoder& decoder) {
  if (decoder.base() != "match") return false;
  Instruction& out = decoder.out;
  out.option = decoder.suffixes.take("all");
  if (!out.option && !decoder.suffixes.take("any")) decoder.unknown();
  decoder.suffixes.take("sync");
  const Type type = decoder.suffixes.take_type();
  if (bits(type) != 32 && bits(type) != 64) decoder.unknown();
  decoder.expect_operands(3, 3);
  out.handler = match;
  const PtxOperand* destination = &decoder.operand(0);
  if (destination->kind == PtxOperand::Kind::kPair) {
    out.e = decoder.predicate_destination(destination->parts[1]);
    destination = &destination->parts[0];
  }
  out.d = decoder.destination(*destination, 4);
  out.a = decoder.source(decoder.operand(1), type);
  out.a_width = static_cast<std::uint8_t>(bytes(type));
  out.control = Control::kWarpSync;
  out.members = decoder.source(decoder.operand(2), Type::kB32);
  return true;
}

bool decode_redux(Decoder& decoder) {
  if (decoder.base() != "redux") return false;
  Instruction& out = decoder.out;
  decoder.suffixes.take("sync");
  constexpr std::string_view kModes[] = {"add", "min", "max", "and", "or", "xor"};
  bool found = false;
  for (std::uint16_t i = 0; i < 6; ++i) {
    if (!decoder.suffixes.take(kModes[i])) continue;
    out.mode = i;
    found = true;
  }
  out.saturate = decoder.suffixes.take("abs");
  out.flush = decoder.suffixes.take("NaN");
  out.type = decoder.suffixes.take_type();
  if (!found || bits(out.type) != 32) decoder.unknown();
  decoder.expect_operands(3, 3);
  out.handler = reduce;
  out.d = decoder.destination(decoder.operand(0), 4);
  out.a = decoder.source(decoder.operand(1), out.type);
  out.control = Control::kWarpSync;
  out.members = decoder.source(decoder.operand(2), Type::kB32);
  return true;
}

}  // namespace

bool decode_warp(Decoder& decoder) {
  const std::string_view base = decoder.base();
  Instruction& out = decoder.out;
  out.kind = InstructionClass::kWarp;
  if (decode_shuffle(decoder) || decode_vote(decoder) || decode_match(decoder) || decode_redux(decoder)) return true;
  if (base == "activemask") {
    decoder.suffixes.take_type();
    decoder.expect_operands(1, 1);
    out.handler = active_mask;
    out.d = decoder.destination(decoder.operand(0), 4);
    return true;
  }
  if (base == "elect") {
    decoder.suffixes.take("sync");
    decoder.expect_operands(2, 2);
    const PtxOperand& destination = decoder.operand(0);
    if (destination.kind != PtxOperand::Kind::kPair) decoder.fail("a register and a predicate are needed");
    out.handler = elect;
    out.d = decoder.destination(destination.parts[0], 4);
    out.e = decoder.predicate_destination(destination.parts[1]);
    out.control = Control::kWarpSync;
    out.members = decoder.source(decoder.operand(1), Type::kB32);
    return true;
  }
  if (base == "bar" && decoder.suffixes.take("warp")) {
    decoder.suffixes.take("sync");
    decoder.expect_operands(1, 1);
    out.kind = InstructionClass::kBarrier;
    out.handler = sync;
    out.option = true;  // lanes may wait at different pcs
    out.control = Control::kWarpSync;
    out.members = decoder.source(decoder.operand(0), Type::kB32);
    return true;
  }
  return false;
}

}  // namespace fusec::emulator
