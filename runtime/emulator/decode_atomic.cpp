// atom and red: every operation on every type that has one, in global and shared memory. The update of one lane is one
// compare-and-swap on host memory, so that host threads may run blocks at the same time.
#include <atomic>
#include <cmath>

#include "runtime/emulator/access.h"
#include "runtime/emulator/decode.h"
#include "runtime/emulator/lanes.h"

namespace fusec::emulator {
namespace {

enum class AtomicOp : std::uint16_t { kAdd, kMin, kMax, kInc, kDec, kAnd, kOr, kXor, kExch, kCas };
constexpr std::string_view kOpNames[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas"};

template <class T>
T float_extreme(T a, T b, bool wants_max) {
  if (a != a) return b;
  if (b != b) return a;
  if (a == b) return std::signbit(a) == wants_max ? b : a;
  return (a < b) != wants_max ? a : b;
}

template <class U, class S>
U integer_update(AtomicOp op, bool sign, U old, U b) {
  switch (op) {
    case AtomicOp::kAdd:
      return static_cast<U>(old + b);
    case AtomicOp::kMin:
      return sign ? static_cast<U>(std::min(static_cast<S>(old), static_cast<S>(b))) : std::min(old, b);
    case AtomicOp::kMax:
      return sign ? static_cast<U>(std::max(static_cast<S>(old), static_cast<S>(b))) : std::max(old, b);
    case AtomicOp::kInc:
      return old >= b ? U{0} : static_cast<U>(old + 1);
    case AtomicOp::kDec:
      return old == 0 || old > b ? b : static_cast<U>(old - 1);
    case AtomicOp::kAnd:
      return old & b;
    case AtomicOp::kOr:
      return old | b;
    case AtomicOp::kXor:
      return old ^ b;
    default:
      return b;
  }
}

std::uint16_t half_update(AtomicOp op, bool brain, std::uint16_t old, std::uint16_t b) {
  const double x = brain ? bfloat_to_float(old) : half_to_float(old), y = brain ? bfloat_to_float(b) : half_to_float(b);
  const double value = op == AtomicOp::kAdd ? add_odd(x, y) : float_extreme(x, y, op == AtomicOp::kMax);
  return static_cast<std::uint16_t>(encode_float(value, brain ? kBFloat : kHalf, Rounding::kNearestEven));
}

std::uint64_t updated(AtomicOp op, Type type, std::uint64_t old, std::uint64_t b) {
  if (op == AtomicOp::kExch) return b;
  switch (type) {
    case Type::kF32: {
      const float x = std::bit_cast<float>(static_cast<std::uint32_t>(old)),
                  y = std::bit_cast<float>(static_cast<std::uint32_t>(b));
      return std::bit_cast<std::uint32_t>(
          canonical(op == AtomicOp::kAdd ? x + y : float_extreme(x, y, op == AtomicOp::kMax)));
    }
    case Type::kF64: {
      const double x = std::bit_cast<double>(old), y = std::bit_cast<double>(b);
      return std::bit_cast<std::uint64_t>(op == AtomicOp::kAdd ? x + y : float_extreme(x, y, op == AtomicOp::kMax));
    }
    case Type::kF16:
    case Type::kBF16:
      return half_update(op, type == Type::kBF16, static_cast<std::uint16_t>(old), static_cast<std::uint16_t>(b));
    case Type::kF16x2:
    case Type::kBF16x2: {
      const bool brain = type == Type::kBF16x2;
      const auto part = [&](int at) {
        return static_cast<std::uint64_t>(
                   half_update(op, brain, static_cast<std::uint16_t>(old >> at), static_cast<std::uint16_t>(b >> at)))
               << at;
      };
      return part(0) | part(16);
    }
    default:
      break;
  }
  const bool sign = is_signed(type);
  if (bits(type) == 64) return integer_update<std::uint64_t, std::int64_t>(op, sign, old, b);
  return integer_update<std::uint32_t, std::int32_t>(op, sign, static_cast<std::uint32_t>(old),
                                                     static_cast<std::uint32_t>(b));
}

template <class T>
std::uint64_t exchange(std::byte* host, AtomicOp op, Type type, std::uint64_t b, std::uint64_t c) {
  std::atomic_ref<T> place(*reinterpret_cast<T*>(host));
  T old = place.load();
  while (true) {
    const T next = op == AtomicOp::kCas ? (old == static_cast<T>(b) ? static_cast<T>(c) : old)
                                        : static_cast<T>(updated(op, type, old, b));
    if (place.compare_exchange_weak(old, next)) return old;
  }
}

std::uint64_t update_host(std::byte* host, AtomicOp op, Type type, std::uint64_t b, std::uint64_t c) {
  switch (bytes(type)) {
    case 2:
      return exchange<std::uint16_t>(host, op, type, b, c);
    case 4:
      return exchange<std::uint32_t>(host, op, type, b, c);
    default:
      return exchange<std::uint64_t>(host, op, type, b, c);
  }
}

// The list holds the results (where there are any), then the operands b of each element, then c.
void atomic(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  Addresses addresses;
  gather_addresses(warp, in, addresses);
  Hosts hosts = {};
  resolve(warp, {.access = Access::kAtomic, .space = in.space, .bytes = in.bytes, .strong = true}, lanes, addresses,
          hosts);
  const auto op = static_cast<AtomicOp>(in.mode);
  const std::uint32_t size = static_cast<std::uint32_t>(bytes(in.type)), elements = in.bytes / size;
  const Operand* list = &warp.program->lists[in.list];
  const Operand* operands = in.option ? list + elements : list;
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    for (std::uint32_t i = 0; i < elements; ++i) {
      const std::uint64_t b = load_raw(warp, operands[i].slot, operands[i].width, lane);
      const std::uint64_t c =
          op == AtomicOp::kCas ? load_raw(warp, operands[elements].slot, operands[elements].width, lane) : 0;
      const std::uint64_t old = hosts[lane] == nullptr ? 0 : update_host(hosts[lane] + i * size, op, in.type, b, c);
      if (in.option) store_raw(warp, list[i].slot, list[i].width, lane, old);
    }
  }
}

bool has_operation(AtomicOp op, Type type) {
  const bool half = type == Type::kF16 || type == Type::kBF16 || type == Type::kF16x2 || type == Type::kBF16x2;
  if (half || type == Type::kF32 || type == Type::kF64)
    return op == AtomicOp::kAdd || op == AtomicOp::kMin || op == AtomicOp::kMax || op == AtomicOp::kExch;
  if (type == Type::kB16) return op == AtomicOp::kCas || op == AtomicOp::kExch;
  return is_integer(type) && (bits(type) == 32 || bits(type) == 64);
}

std::optional<Space> take_space(Suffixes& suffixes) {
  if (suffixes.take("global")) return Space::kGlobal;
  if (suffixes.take("shared") || suffixes.take("shared::cta")) return Space::kShared;
  if (suffixes.take("shared::cluster")) return Space::kSharedCluster;
  return std::nullopt;
}

}  // namespace

bool decode_atomic(Decoder& decoder) {
  const bool returns = decoder.base() == "atom";
  if (!returns && decoder.base() != "red") return false;
  Suffixes& suffixes = decoder.suffixes;
  if (suffixes.has("async")) return false;
  Instruction& out = decoder.out;
  out.kind = InstructionClass::kAtomic;
  for (std::string_view word : {"relaxed", "acquire", "release", "acq_rel", "cta", "cluster", "gpu", "sys", "noftz"})
    suffixes.take(word);
  const bool hinted = suffixes.take("L2::cache_hint");
  out.space = take_space(suffixes).value_or(Space::kGeneric);
  std::uint32_t elements = 1;
  for (const auto& [word, count] : {std::pair{"v2", 2u}, {"v4", 4u}, {"v8", 8u}}) {
    if (suffixes.take(word)) elements = count;
  }
  bool found = false;
  for (std::uint16_t i = 0; i < std::size(kOpNames); ++i) {
    if (!suffixes.take(kOpNames[i])) continue;
    out.mode = i;
    found = true;
    break;
  }
  out.type = suffixes.take_type();
  const auto op = static_cast<AtomicOp>(out.mode);
  if (!found || !has_operation(op, out.type)) decoder.unknown();
  const std::size_t wanted = (returns ? 1u : 0u) + 2 + (op == AtomicOp::kCas ? 1 : 0) + (hinted ? 1 : 0);
  decoder.expect_operands(wanted, wanted);
  std::size_t next = returns ? 1 : 0;
  out.space = decoder.address(decoder.operand(next++), out.space);
  const auto element = [&](const PtxOperand& operand, std::uint32_t i) -> const PtxOperand& {
    if (elements == 1) return operand;
    if (operand.kind != PtxOperand::Kind::kVector || operand.parts.size() != elements)
      decoder.fail("the operand does not match the vector width");
    return operand.parts[i];
  };
  const int size = bytes(out.type);
  out.option = returns && decoder.operand(0).kind != PtxOperand::Kind::kSink;
  std::vector<std::pair<Slot, int>> slots;
  for (std::uint32_t i = 0; out.option && i < elements; ++i) {
    slots.emplace_back(decoder.destination(element(decoder.operand(0), i), size), size);
  }
  for (std::uint32_t i = 0; i < elements; ++i)
    slots.emplace_back(decoder.source(element(decoder.operand(next), i), out.type), size);
  if (op == AtomicOp::kCas) slots.emplace_back(decoder.source(decoder.operand(next + 1), out.type), size);
  decoder.begin_list();
  for (const auto& [slot, width] : slots) decoder.add_to_list(slot, width);
  out.bytes = static_cast<std::uint16_t>(static_cast<std::uint32_t>(size) * elements);
  out.handler = atomic;
  return true;
}

}  // namespace fusec::emulator
