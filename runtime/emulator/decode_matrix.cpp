// Matrix instructions of a warp: mma.sync, ldmatrix, stmatrix, movmatrix.
#include <algorithm>
#include <bit>

#include "runtime/emulator/access.h"
#include "runtime/emulator/decode.h"
#include "runtime/emulator/matrix_fragment.h"

namespace fusec::emulator {
namespace {

constexpr int kMaxMmaK = 256;

struct MmaShape {
  int m = 0, n = 0, k = 0;
};

// The shape, which the decoder packs into Instruction::immediate.
MmaShape mma_shape_of(const Instruction& in) {
  return {static_cast<int>(in.immediate & 0xff), static_cast<int>(in.immediate >> 8 & 0xff),
          static_cast<int>(in.immediate >> 16 & 0xfff)};
}

bool is_wide(Type type) {
  return type == Type::kF64;
}

struct Registers {
  const Operand *d, *a, *b, *c;
};

Registers registers_of(const Warp& warp, const Instruction& in) {
  const Operand* d = &warp.program->lists[in.list];
  return {d, d + in.d_width, d + in.d_width + in.a_width, d + in.d_width + in.a_width + in.b_width};
}

// The elements of A and B as numbers, with k as the last dimension of both.
template <class T>
struct Factors {
  T a[16 * kMaxMmaK], b[8 * kMaxMmaK];

  Factors(const Warp& warp, const Instruction& in, const Registers& registers, const MmaShape& shape) {
    read_fragment(warp, registers.a, in.a_width, in.type, shape.m == 16, shape.k, a);
    read_fragment(warp, registers.b, in.b_width, in.from, false, shape.k, b);
  }
};

void count_products(const Warp& warp, const MmaShape& shape) {
  warp.block->counters.tensor_multiply_adds += static_cast<std::uint64_t>(shape.m * shape.n * shape.k);
}

// mma.sync; T is the accumulator's type.
template <class T>
void mma(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  const MmaShape shape = mma_shape_of(in);
  const Registers registers = registers_of(warp, in);
  const Factors<T> factors(warp, in, registers, shape);
  T sums[16 * 8];
  read_accumulators(warp, registers.c, in.option, shape.m, sums);
  add_product(factors.a, factors.b, sums, shape.m, shape.k);
  write_accumulators(warp, registers.d, in.strong, shape.m, sums, lanes);
  count_products(warp, shape);
}

void mma_integer(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  const MmaShape shape = mma_shape_of(in);
  const Registers registers = registers_of(warp, in);
  const Factors<std::int32_t> factors(warp, in, registers, shape);
  std::int32_t sums[16 * 8], products[16 * 8] = {};
  read_accumulators(warp, registers.c, false, shape.m, sums);
  add_product(factors.a, factors.b, products, shape.m, shape.k);
  add_exact(products, static_cast<std::size_t>(shape.m * shape.n), in.saturate, sums);
  write_accumulators(warp, registers.d, false, shape.m, sums, lanes);
  count_products(warp, shape);
}

// mma.sync on single bits: adds the number of ones in the xor (option) or the and of a row and a column, wrapping.
void mma_bits(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  const MmaShape shape = mma_shape_of(in);
  const Registers registers = registers_of(warp, in);
  const Factors<std::int32_t> factors(warp, in, registers, shape);
  std::int32_t sums[16 * 8], ones[16 * 8] = {};
  read_accumulators(warp, registers.c, false, shape.m, sums);
  for (int i = 0; i < shape.m * shape.n; ++i) {
    const std::int32_t *row = factors.a + i / 8 * shape.k, *column = factors.b + i % 8 * shape.k;
    for (int p = 0; p < shape.k; ++p) ones[i] += in.option ? row[p] ^ column[p] : row[p] & column[p];
  }
  add_exact(ones, static_cast<std::size_t>(shape.m * shape.n), false, sums);
  write_accumulators(warp, registers.d, false, shape.m, sums, lanes);
  count_products(warp, shape);
}

std::optional<MmaShape> take_shape(Suffixes& suffixes) {
  constexpr std::pair<std::string_view, MmaShape> kShapes[] = {
      {"m16n8k4", {16, 8, 4}},   {"m16n8k8", {16, 8, 8}},     {"m16n8k16", {16, 8, 16}},  {"m16n8k32", {16, 8, 32}},
      {"m16n8k64", {16, 8, 64}}, {"m8n8k4", {8, 8, 4}},       {"m8n8k16", {8, 8, 16}},    {"m8n8k32", {8, 8, 32}},
      {"m8n8k128", {8, 8, 128}}, {"m16n8k128", {16, 8, 128}}, {"m16n8k256", {16, 8, 256}}};
  for (const auto& [word, shape] : kShapes) {
    if (suffixes.take(word)) return shape;
  }
  return std::nullopt;
}

bool shape_fits(const MmaShape& shape, Type type) {
  const int k = shape.k, tall = shape.m == 16;
  switch (type) {
    case Type::kF16:
    case Type::kBF16:
      return tall && (k == 8 || k == 16);
    case Type::kTF32:
      return tall && (k == 4 || k == 8);
    case Type::kF64:
      return tall ? k == 4 || k == 8 || k == 16 : k == 4;
    case Type::kS8:
    case Type::kU8:
      return tall ? k == 16 || k == 32 : k == 16;
    case Type::kS4:
    case Type::kU4:
      return tall ? k == 32 || k == 64 : k == 32;
    case Type::kE4M3:
    case Type::kE5M2:
      return tall && (k == 16 || k == 32);
    case Type::kB1:
      return tall ? k == 128 || k == 256 : k == 128;
    default:
      return false;
  }
}

void decode_mma(Decoder& decoder) {
  Suffixes& suffixes = decoder.suffixes;
  Instruction& out = decoder.out;
  suffixes.take("sync");
  suffixes.take("aligned");
  if (suffixes.has("sp") || suffixes.has("sp::ordered_metadata"))
    decoder.fail("sparse products are not supported", decoder.ptx().opcode);
  const std::optional<MmaShape> shape = take_shape(suffixes);
  if (!shape || !suffixes.take("row") || !suffixes.take("col")) decoder.unknown();
  out.saturate = suffixes.take("satfinite");
  const Type d = suffixes.take_type(), a = suffixes.take_type(), b = suffixes.take_type(), c = suffixes.take_type();
  if (!shape_fits(*shape, a) || bits(a) != bits(b) || c == Type::kNone) decoder.unknown();
  const bool integer = !is_float(a);
  const bool wide = is_wide(a), binary = a == Type::kB1;
  const bool ones_of_xor = binary && suffixes.take("xor"), ones_of_and = binary && suffixes.take("and");
  if (binary && (!(ones_of_xor || ones_of_and) || !suffixes.take("popc") || out.saturate || b != a)) decoder.unknown();
  const bool good_sum = integer ? d == Type::kS32 && c == Type::kS32
                        : wide  ? d == Type::kF64 && c == Type::kF64
                                : (d == Type::kF32 || d == Type::kF16) && (c == Type::kF32 || c == Type::kF16);
  if (!good_sum) decoder.unknown();
  out.kind = InstructionClass::kTensor;
  out.handler = binary ? mma_bits : integer ? mma_integer : wide ? mma<double> : mma<float>;
  out.type = a;
  out.from = b;
  out.option = c == Type::kF16 || ones_of_xor;
  out.strong = d == Type::kF16;
  out.immediate = shape->m | (shape->n << 8) | (shape->k << 16);
  const int elements = register_bits(a) / bits(a);
  const int a_count = shape->m * shape->k / kLanes / elements, b_count = shape->n * shape->k / kLanes / elements;
  const int sums = shape->m / 4;
  decoder.expect_operands(4, 4);
  const int counts[4] = {d == Type::kF16 ? sums / 2 : sums, a_count, b_count, c == Type::kF16 ? sums / 2 : sums};
  std::vector<Slot> slots;
  const int width = wide ? 8 : 4;
  for (std::size_t i = 0; i < 4; ++i) {
    const PtxOperand& operand = decoder.operand(i);
    const bool single = operand.kind != PtxOperand::Kind::kVector;
    const std::size_t given = single ? 1 : operand.parts.size();
    if (given != static_cast<std::size_t>(counts[i])) decoder.fail("a fragment has the wrong number of registers");
    for (std::size_t r = 0; r < given; ++r) {
      const PtxOperand& part = single ? operand : operand.parts[r];
      slots.push_back(i == 0 ? decoder.destination(part, width) : decoder.source(part, wide ? Type::kB64 : Type::kB32));
    }
  }
  decoder.begin_list();
  for (Slot slot : slots) decoder.add_to_list(slot, width);
  out.d_width = static_cast<std::uint8_t>(counts[0]);
  out.a_width = static_cast<std::uint8_t>(a_count);
  out.b_width = static_cast<std::uint8_t>(b_count);
  out.control = Control::kWarpSync;
}

// ---- ldmatrix stmatrix movmatrix: 8 x 8 matrices of 16-bit elements

// Lane 8m + r holds the address of row r of matrix m. Lane l gets elements 2 (l % 4) and 2 (l % 4) + 1 of row l / 4 of
// the matrix or of its transpose.
void load_matrix(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  Addresses addresses;
  gather_addresses(warp, in, addresses);
  std::uint16_t rows[4][8][8] = {};
  for (std::uint32_t matrix = 0; matrix < in.count; ++matrix) {
    Hosts hosts = {};
    resolve(warp, {.access = Access::kRead, .space = in.space, .bytes = 16}, 0xffu << (8 * matrix), addresses, hosts);
    for (std::uint32_t row = 0; row < 8; ++row) {
      if (hosts[8 * matrix + row] != nullptr) std::memcpy(rows[matrix][row], hosts[8 * matrix + row], 16);
    }
  }
  for (std::uint32_t matrix = 0; matrix < in.count; ++matrix) {
    const Operand& to = warp.program->lists[in.list + matrix];
    for (int lane = 0; lane < kLanes; ++lane) {
      if ((lanes >> lane & 1) == 0) continue;
      const int i = lane / 4, j = 2 * (lane % 4);
      const std::uint16_t low = in.option ? rows[matrix][j][i] : rows[matrix][i][j];
      const std::uint16_t high = in.option ? rows[matrix][j + 1][i] : rows[matrix][i][j + 1];
      store_raw(warp, to.slot, 4, lane, static_cast<std::uint32_t>(low) | (static_cast<std::uint32_t>(high) << 16));
    }
  }
}

void store_matrix(Warp& warp, const Instruction& in, std::uint32_t) {
  Addresses addresses;
  gather_addresses(warp, in, addresses);
  for (std::uint32_t matrix = 0; matrix < in.count; ++matrix) {
    const Operand& from = warp.program->lists[in.list + matrix];
    std::uint16_t rows[kLanes][8] = {};  // by the lane that holds the row's address
    for (int lane = 0; lane < kLanes; ++lane) {
      const std::uint64_t raw = load_raw(warp, from.slot, 4, lane);
      const int i = lane / 4, j = 2 * (lane % 4);
      for (int half = 0; half < 2; ++half) {
        const auto value = static_cast<std::uint16_t>(raw >> (16 * half));
        const std::size_t base = 8 * matrix;
        if (in.option)
          rows[base + static_cast<std::size_t>(j + half)][i] = value;
        else
          rows[base + static_cast<std::size_t>(i)][j + half] = value;
      }
    }
    Hosts hosts = {};
    resolve(warp,
            {.access = Access::kWrite,
             .space = in.space,
             .bytes = 16,
             .data = reinterpret_cast<const std::byte*>(rows),
             .stride = 16},
            0xffu << (8 * matrix), addresses, hosts);
    for (std::uint32_t row = 8 * matrix; row < 8 * matrix + 8; ++row) {
      if (hosts[row] != nullptr) std::memcpy(hosts[row], rows[row], 16);
    }
  }
}

void transpose_matrix(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  const Lanes<std::uint32_t> a = load_lanes<std::uint32_t>(warp, in.a);
  const auto element = [&a](int i, int j) { return (a.at[4 * i + j / 2] >> (16 * (j % 2))) & 0xffffu; };
  Lanes<std::uint32_t> result;
  for (int lane = 0; lane < kLanes; ++lane) {
    const int i = lane / 4, j = 2 * (lane % 4);
    result.at[lane] = element(j, i) | (element(j + 1, i) << 16);
  }
  store_lanes(warp, in.d, result, lanes);
}

void decode_matrix_transfer(Decoder& decoder, bool is_load) {
  Suffixes& suffixes = decoder.suffixes;
  Instruction& out = decoder.out;
  suffixes.take("sync");
  suffixes.take("aligned");
  if (!suffixes.take("m8n8")) decoder.unknown();
  std::size_t count = 0;
  for (const auto& [word, number] : {std::pair{"x1", 1u}, {"x2", 2u}, {"x4", 4u}}) {
    if (suffixes.take(word)) count = number;
  }
  out.option = suffixes.take("trans");
  out.space = Space::kGeneric;
  if (suffixes.take("shared") || suffixes.take("shared::cta")) out.space = Space::kShared;
  if (count == 0 || suffixes.take_type() != Type::kB16) decoder.unknown();
  decoder.expect_operands(2, 2);
  const PtxOperand &value = decoder.operand(is_load ? 0 : 1), &where = decoder.operand(is_load ? 1 : 0);
  out.space = decoder.address(where, out.space);
  const bool single = value.kind != PtxOperand::Kind::kVector;
  if ((single ? 1 : value.parts.size()) != count) decoder.fail("the wrong number of registers");
  std::vector<Slot> slots;
  for (std::size_t i = 0; i < count; ++i) {
    const PtxOperand& part = single ? value : value.parts[i];
    slots.push_back(is_load ? decoder.destination(part, 4) : decoder.source(part, Type::kB32));
  }
  decoder.begin_list();
  for (Slot slot : slots) decoder.add_to_list(slot, 4);
  out.kind = InstructionClass::kLoadStore;
  out.handler = is_load ? load_matrix : store_matrix;
  out.control = Control::kWarpSync;
}

}  // namespace

bool decode_matrix(Decoder& decoder) {
  const std::string_view base = decoder.base();
  if (base == "mma") {
    decode_mma(decoder);
  } else if (base == "ldmatrix" || base == "stmatrix") {
    decode_matrix_transfer(decoder, base == "ldmatrix");
  } else if (base == "movmatrix") {
    for (std::string_view word : {"sync", "aligned", "m8n8", "trans", "b16"}) {
      if (!decoder.suffixes.take(word)) decoder.unknown();
    }
    decoder.expect_operands(2, 2);
    decoder.out.kind = InstructionClass::kMove;
    decoder.out.handler = transpose_matrix;
    decoder.out.control = Control::kWarpSync;
    decoder.out.d = decoder.destination(decoder.operand(0), 4);
    decoder.out.a = decoder.source(decoder.operand(1), Type::kB32);
  } else {
    return false;
  }
  return true;
}

}  // namespace fusec::emulator
