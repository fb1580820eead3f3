// wmma.load wmma.store wmma.mma: products of fragments. The ISA does not define the layout of fragments.
//
// The emulator uses row-major order: A is m x k, B k x n, C m x n, and each lane holds the next elements. float16
// fragments of A and B have sixteen elements for every shape; some shapes leave elements unused.
#include <algorithm>
#include <array>
#include <bit>

#include "runtime/emulator/access.h"
#include "runtime/emulator/decode.h"
#include "runtime/emulator/lanes.h"
#include "runtime/emulator/matrix_element.h"
#include "runtime/emulator/matrix_fragment.h"

namespace fusec::emulator {
namespace {

struct WmmaShape {
  int m = 0, n = 0, k = 0;
};

enum class Part : std::uint8_t { kA, kB, kC };

WmmaShape unpack(std::uint32_t packed) {
  return {static_cast<int>(packed & 0xff), static_cast<int>(packed >> 8 & 0xff), static_cast<int>(packed >> 16)};
}

int columns_of(const WmmaShape& shape, Part part) {
  return part == Part::kA ? shape.k : shape.n;
}
int elements_of(const WmmaShape& shape, Part part) {
  return (part == Part::kB ? shape.k : shape.m) * columns_of(shape, part);
}

std::size_t registers_of(const WmmaShape& shape, Part part, Type type) {
  if (type == Type::kF16 && part != Part::kC) return 8;
  return static_cast<std::size_t>(elements_of(shape, part) / kLanes * bits(type) / register_bits(type));
}

std::uint64_t load_element(const Warp& warp, const Operand* registers, Type type, int lane, int i) {
  const int width = bits(type), per = register_bits(type) / width;
  const std::uint64_t raw =
      load_raw(warp, registers[i / per].slot, register_bits(type) / 8, lane) >> (i % per * width % 64);
  return width == 64 ? raw : raw & ((std::uint64_t{1} << width) - 1);
}

void store_element(Warp& warp, const Operand* registers, Type type, int lane, int i, std::uint64_t value) {
  const int width = bits(type), per = register_bits(type) / width;
  std::byte* target = warp.lanes(registers[i / per].slot) + lane * register_bits(type) / 8 + i % per * width / 8;
  std::memcpy(target, &value, static_cast<std::size_t>(width / 8));
}

// Loads or stores one element of every lane at a time, with the checks of an ordinary access.
void transfer(Warp& warp, const Instruction& in, std::uint32_t lanes, bool is_load) {
  const WmmaShape shape = unpack(in.target);
  const auto part = static_cast<Part>(in.mode);
  const int per_lane = elements_of(shape, part) / kLanes, columns = columns_of(shape, part);
  const auto size = static_cast<std::uint32_t>(bytes(in.type));
  const Operand* registers = &warp.program->lists[in.list];
  Addresses base;
  gather_addresses(warp, in, base);
  for (int i = 0; i < per_lane; ++i) {
    Addresses addresses;
    std::array<std::byte, kLanes * 8> data{};
    for (int lane = 0; lane < kLanes; ++lane) {
      const int element = lane * per_lane + i, row = element / columns, column = element % columns;
      const std::uint64_t step =
          in.c == kNoSlot ? static_cast<std::uint64_t>(in.reconvergence) : load_raw(warp, in.c, 4, lane);
      const std::uint64_t at = in.option ? static_cast<std::uint64_t>(column) * step + static_cast<std::uint64_t>(row)
                                         : static_cast<std::uint64_t>(row) * step + static_cast<std::uint64_t>(column);
      addresses[lane] = base[lane] + at * size;
      if (is_load) continue;
      const std::uint64_t value = load_element(warp, registers, in.type, lane, i);
      std::memcpy(&data[static_cast<std::size_t>(lane) * size], &value, size);
    }
    Hosts hosts = {};
    Request request{.space = in.space, .bytes = size};
    if (!is_load)
      request = {.access = Access::kWrite, .space = in.space, .bytes = size, .data = data.data(), .stride = size};
    resolve(warp, request, lanes, addresses, hosts);
    for (int lane = 0; lane < kLanes; ++lane) {
      if ((lanes >> lane & 1) == 0) continue;
      std::uint64_t value = 0;
      if (is_load) {
        if (hosts[lane] != nullptr) std::memcpy(&value, hosts[lane], size);
        store_element(warp, registers, in.type, lane, i, value);
      } else if (hosts[lane] != nullptr) {
        std::memcpy(hosts[lane], &data[static_cast<std::size_t>(lane) * size], size);
      }
    }
  }
}

void load_fragment(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  transfer(warp, in, lanes, true);
}
void store_fragment(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  transfer(warp, in, lanes, false);
}

template <class T>
std::vector<T> values_of(const Warp& warp, const Operand* registers, const WmmaShape& shape, Part part, Type type) {
  const int count = elements_of(shape, part), per_lane = count / kLanes;
  std::vector<T> values(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    const std::uint64_t raw = load_element(warp, registers, type, i / per_lane, i % per_lane);
    if (type == Type::kF32)
      values[static_cast<std::size_t>(i)] = static_cast<T>(std::bit_cast<float>(static_cast<std::uint32_t>(raw)));
    else if (type == Type::kS32)
      values[static_cast<std::size_t>(i)] = static_cast<T>(static_cast<std::int32_t>(raw));
    else
      values[static_cast<std::size_t>(i)] = element_value<T>(type, raw);
  }
  return values;
}

std::uint64_t raw_of(Type type, double value) {
  switch (type) {
    case Type::kF64:
      return std::bit_cast<std::uint64_t>(value);
    case Type::kF16:
      return float_to_half(static_cast<float>(value));
    default:
      return std::bit_cast<std::uint32_t>(canonical(static_cast<float>(value)));
  }
}

// wmma.mma. The list holds the registers of D, A, B and C. T is the type of the accumulators; the ISA leaves the order
// of additions open.
template <class T>
void multiply(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  const WmmaShape shape = unpack(in.target);
  const Type d_type = static_cast<Type>(in.d_width), c_type = static_cast<Type>(in.c_width);
  const Operand* d = &warp.program->lists[in.list];
  const Operand* a = d + registers_of(shape, Part::kC, d_type);
  const Operand* b = a + registers_of(shape, Part::kA, in.type);
  const Operand* c = b + registers_of(shape, Part::kB, in.from);
  const std::vector<T> a_values = values_of<T>(warp, a, shape, Part::kA, in.type),
                       b_values = values_of<T>(warp, b, shape, Part::kB, in.from);
  std::vector<T> sums = values_of<T>(warp, c, shape, Part::kC, c_type);
  for (int i = 0; i < shape.m; ++i) {
    for (int p = 0; p < shape.k; ++p) {
      const T x = a_values[static_cast<std::size_t>(i * shape.k + p)];
      for (int j = 0; j < shape.n; ++j)
        sums[static_cast<std::size_t>(i * shape.n + j)] += x * b_values[static_cast<std::size_t>(p * shape.n + j)];
    }
  }
  const int per_lane = elements_of(shape, Part::kC) / kLanes;
  for (int i = 0; i < shape.m * shape.n; ++i) {
    const int lane = i / per_lane;
    if ((lanes >> lane & 1) == 0) continue;
    std::uint64_t raw;
    if constexpr (std::is_same_v<T, std::int64_t>) {
      const std::int64_t sum = sums[static_cast<std::size_t>(i)];
      raw = static_cast<std::uint64_t>(in.saturate ? std::clamp<std::int64_t>(sum, INT32_MIN, INT32_MAX) : sum);
    } else {
      raw = raw_of(d_type, static_cast<double>(sums[static_cast<std::size_t>(i)]));
    }
    store_element(warp, d, d_type, lane, i % per_lane, raw);
  }
  warp.block->counters.tensor_multiply_adds += static_cast<std::uint64_t>(shape.m * shape.n * shape.k);
}

// ---- decoding

WmmaShape take_shape(Decoder& decoder) {
  constexpr std::pair<std::string_view, WmmaShape> kShapes[] = {{"m16n16k16", {16, 16, 16}},
                                                                {"m32n8k16", {32, 8, 16}},
                                                                {"m8n32k16", {8, 32, 16}},
                                                                {"m16n16k8", {16, 16, 8}},
                                                                {"m8n8k4", {8, 8, 4}}};
  for (const auto& [word, shape] : kShapes) {
    if (decoder.suffixes.take(word)) return shape;
  }
  decoder.unknown();
}

std::uint32_t pack(const WmmaShape& shape) {
  return static_cast<std::uint32_t>(shape.m | shape.n << 8 | shape.k << 16);
}

bool has_product(const WmmaShape& shape, Type type) {
  const bool sixteen = shape.k == 16;
  switch (type) {
    case Type::kF16:
    case Type::kBF16:
    case Type::kS8:
    case Type::kU8:
      return sixteen;
    case Type::kTF32:
      return shape.k == 8;
    case Type::kF64:
      return shape.k == 4;
    default:
      return false;
  }
}

// Whether a shape has accumulators of this type; float16 and integers only for k = 16.
bool has_sum(const WmmaShape& shape, Type type) {
  if (type == Type::kF64) return shape.k == 4;
  return type == Type::kF32 ? shape.k != 4 : (type == Type::kF16 || type == Type::kS32) && shape.k == 16;
}

void add_fragment(Decoder& decoder, const PtxOperand& operand, std::size_t count, Type type, bool is_target,
                  std::vector<std::pair<Slot, int>>& slots) {
  const bool single = operand.kind != PtxOperand::Kind::kVector;
  if ((single ? 1 : operand.parts.size()) != count) decoder.fail("a fragment has the wrong number of registers");
  const int width = register_bits(type) / 8;
  for (std::size_t i = 0; i < count; ++i) {
    const PtxOperand& part = single ? operand : operand.parts[i];
    slots.emplace_back(
        is_target ? decoder.destination(part, width) : decoder.source(part, width == 8 ? Type::kB64 : Type::kB32),
        width);
  }
}

void add_slots(Decoder& decoder, const std::vector<std::pair<Slot, int>>& slots) {
  decoder.begin_list();
  for (const auto& [slot, width] : slots) decoder.add_to_list(slot, width);
}

// wmma.load.a|b|c.sync.aligned.layout.shape{.space}.type registers, [address]{, stride}
// wmma.store.d.sync.aligned.layout.shape{.space}.type [address], registers{, stride}
void decode_wmma_transfer(Decoder& decoder, bool is_load) {
  Suffixes& suffixes = decoder.suffixes;
  Instruction& out = decoder.out;
  Part part = Part::kC;
  if (is_load && suffixes.take("a"))
    part = Part::kA;
  else if (is_load && suffixes.take("b"))
    part = Part::kB;
  else if (!suffixes.take(is_load ? "c" : "d"))
    decoder.unknown();
  suffixes.take("sync");
  suffixes.take("aligned");
  const bool column_major = suffixes.take("col");
  if (!column_major && !suffixes.take("row")) decoder.unknown();
  const WmmaShape shape = take_shape(decoder);
  Space space = Space::kGeneric;
  if (suffixes.take("global")) space = Space::kGlobal;
  if (suffixes.take("shared") || suffixes.take("shared::cta")) space = Space::kShared;
  out.type = suffixes.take_type();
  if (part == Part::kC ? !has_sum(shape, out.type) : !has_product(shape, out.type)) decoder.unknown();
  decoder.expect_operands(2, 3);
  out.space = decoder.address(decoder.operand(is_load ? 1 : 0), space);
  if (decoder.operands() == 3) out.c = decoder.source(decoder.operand(2), Type::kB32);
  std::vector<std::pair<Slot, int>> slots;
  add_fragment(decoder, decoder.operand(is_load ? 0 : 1), registers_of(shape, part, out.type), out.type, is_load,
               slots);
  add_slots(decoder, slots);
  out.option = column_major;
  out.mode = static_cast<std::uint16_t>(part);
  out.target = pack(shape);
  // Without a stride, rows (or columns) are contiguous.
  out.reconvergence = static_cast<std::uint32_t>(column_major ? elements_of(shape, part) / columns_of(shape, part)
                                                              : columns_of(shape, part));
  out.kind = InstructionClass::kLoadStore;
  out.control = Control::kWarpSync;
  out.handler = is_load ? load_fragment : store_fragment;
}

// wmma.mma.sync.aligned.layout.layout.shape.dtype.ctype (float16) or .dtype.atype.btype.ctype d, a, b, c
void decode_wmma_product(Decoder& decoder) {
  Suffixes& suffixes = decoder.suffixes;
  Instruction& out = decoder.out;
  suffixes.take("sync");
  suffixes.take("aligned");
  for (int i = 0; i < 2; ++i) {  // the layout in memory, which fragments here do not depend on
    if (!suffixes.take("row") && !suffixes.take("col")) decoder.unknown();
  }
  const WmmaShape shape = take_shape(decoder);
  suffixes.take("rn");
  out.saturate = suffixes.take("satfinite");
  std::array<Type, 4> types{};
  std::size_t count = 0;
  while (count < 4 && (types[count] = suffixes.take_type()) != Type::kNone) ++count;
  if (count == 2) types = {types[0], Type::kF16, Type::kF16, types[1]};
  if (count != 2 && count != 4) decoder.unknown();
  const auto [d, a, b, c] = types;
  if (!has_product(shape, a) || bits(a) != bits(b) || is_float(a) != is_float(b) || !has_sum(shape, d) ||
      !has_sum(shape, c) || (d == Type::kS32) == is_float(a) || (c == Type::kS32) != (d == Type::kS32)) {
    decoder.unknown();
  }
  decoder.expect_operands(4, 4);
  std::vector<std::pair<Slot, int>> slots;
  add_fragment(decoder, decoder.operand(0), registers_of(shape, Part::kC, d), d, true, slots);
  add_fragment(decoder, decoder.operand(1), registers_of(shape, Part::kA, a), a, false, slots);
  add_fragment(decoder, decoder.operand(2), registers_of(shape, Part::kB, b), b, false, slots);
  add_fragment(decoder, decoder.operand(3), registers_of(shape, Part::kC, c), c, false, slots);
  add_slots(decoder, slots);
  out.type = a;
  out.from = b;
  out.d_width = static_cast<std::uint8_t>(d);
  out.c_width = static_cast<std::uint8_t>(c);
  out.target = pack(shape);
  out.kind = InstructionClass::kTensor;
  out.control = Control::kWarpSync;
  out.handler = d == Type::kS32 ? multiply<std::int64_t> : d == Type::kF64 ? multiply<double> : multiply<float>;
}

}  // namespace

bool decode_wmma(Decoder& decoder) {
  if (decoder.base() != "wmma") return false;
  Suffixes& suffixes = decoder.suffixes;
  if (suffixes.take("load"))
    decode_wmma_transfer(decoder, true);
  else if (suffixes.take("store"))
    decode_wmma_transfer(decoder, false);
  else if (suffixes.take("mma"))
    decode_wmma_product(decoder);
  else
    decoder.unknown();
  return true;
}

}  // namespace fusec::emulator
