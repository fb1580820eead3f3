// wgmma.mma_async: a warpgroup's product of matrices in shared memory (or A in registers), and its fences and groups.
//
// Each of the four warps computes its 16 of the 64 rows when it executes the instruction. The result is in its
// registers at once; wgmma_in_flight.h checks accesses before the wait for the group. 64-bit descriptors give the
// operands in shared memory, in units of 16 bytes:
//   bits 0-13 start, 16-29 leading byte offset, 32-45 stride byte offset, 62-63 swizzle (0 none, 1 128, 2 64, 3 32).
#include <algorithm>
#include <bit>

#include "runtime/emulator/access.h"
#include "runtime/emulator/decode.h"
#include "runtime/emulator/matrix_fragment.h"
#include "runtime/emulator/swizzle.h"

namespace fusec::emulator {
namespace {

constexpr int kMaxN = 256, kMaxWgmmaK = 32, kWarpRows = 16, kPanel = kWarpRows * 8;

struct Layout {  // a decoded descriptor, in bytes
  std::uint64_t start = 0, leading = 0, stride = 0;
  std::uint32_t swizzle = 0;
};

Layout decode_descriptor(std::uint64_t bits) {
  constexpr std::uint32_t kSwizzles[4] = {0, 128, 64, 32};
  return {(bits & 0x3fff) << 4, (bits >> 16 & 0x3fff) << 4, (bits >> 32 & 0x3fff) << 4, kSwizzles[bits >> 62]};
}

// The address of the 16-byte chunk with element (row, column): row along M or N, column along K.
std::uint64_t chunk_address(const Layout& layout, bool transposed, std::uint32_t row, std::uint32_t column,
                            std::uint32_t size) {
  std::uint64_t address = layout.start;
  const std::uint32_t per = 16 / size;  // elements per chunk
  const std::uint32_t width = layout.swizzle == 0 ? 16 : layout.swizzle;
  if (!transposed) {
    // Groups of eight rows of `width` bytes; groups are `stride` apart. Without swizzle, chunks along K are `leading`
    // apart; with swizzle they are contiguous.
    const std::uint32_t chunk = column / per;
    address += row % 8 * width + row / 8 * layout.stride;
    address += layout.swizzle == 0 ? chunk * layout.leading : chunk * 16;
  } else {
    // Transposed: each K is a row of `width` bytes, in groups of eight rows.
    const std::uint32_t per_width = width / size;
    const std::uint32_t chunk = row % per_width / per;
    const std::uint64_t along_rows = layout.swizzle == 0 ? layout.stride : layout.leading;
    const std::uint64_t along_k = layout.swizzle == 0 ? layout.leading : layout.stride;
    address += chunk * 16 + row / per_width * along_rows + column % 8 * width + column / 8 * along_k;
  }
  return swizzled(address, layout.swizzle);
}

// Reads rows x k elements of a matrix in shared memory, from row `first` on.
template <class T>
void read_matrix(Warp& warp, std::uint64_t descriptor, Type type, bool transposed, int first, int rows, int k, T* out) {
  const Layout layout = decode_descriptor(descriptor);
  const auto size = static_cast<std::uint32_t>(bytes(type));
  const int per = static_cast<int>(16 / size);
  const int row_step = transposed ? per : 1, k_step = transposed ? 1 : per;
  const Request request{.access = Access::kRead,
                        .space = Space::kShared,
                        .bytes = 16,
                        .async = true,
                        .async_proxy = true,
                        .product = true};
  const int lane = std::countr_zero(warp.live);
  for (int row = 0; row < rows; row += row_step) {
    for (int column = 0; column < k; column += k_step) {
      const std::uint64_t address = chunk_address(layout, transposed, static_cast<std::uint32_t>(first + row),
                                                  static_cast<std::uint32_t>(column), size);
      const std::byte* chunk = resolve_shared(warp, lane, address, request, nullptr);
      if (chunk != nullptr) note_operand(warp, address);
      T values[16] = {};
      if (chunk != nullptr) read_rows(type, chunk, 1, 16, values, 0);
      T* to = out + row * k + column;
      for (int i = 0; i < per; ++i) to[transposed ? i * k : i] = values[i];
    }
  }
}

template <class T>
void negate(T* values, int count) {
  for (int i = 0; i < count; ++i) values[i] = static_cast<T>(0 - values[i]);
}

struct WgmmaShape {
  int n, k;
};
WgmmaShape wgmma_shape_of(const Instruction& in) {
  return {static_cast<int>(in.immediate & 0xffff), static_cast<int>(in.immediate >> 16 & 0xff)};
}

// Reads the accumulators of one panel, 16 x 8; zeros in lanes outside the mask `keeps` (scale-d is false).
template <class T>
void read_panel(const Warp& warp, const Operand* registers, bool half, std::uint32_t keeps, T* sums) {
  if (keeps == 0)
    std::fill_n(sums, kPanel, T{0});
  else
    read_accumulators(warp, registers, half, kWarpRows, sums);
  for (std::uint32_t left = keeps == 0 ? 0 : ~keeps; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    for (int i : {0, 1, 64, 65}) sums[2 * lane + i] = T{0};
  }
}

// wgmma.mma_async. The list holds the accumulator registers, A's four registers or its descriptor, B's descriptor and
// the predicate scale-d.
template <class T>
void wgmma(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  const WgmmaShape shape = wgmma_shape_of(in);
  const Operand* list = &warp.program->lists[in.list];
  const int d_count = in.count - (in.option ? 6 : 3);
  const Operand *d = list, *a = list + d_count, *b = a + (in.option ? 4 : 1), *scale = b + 1;
  const bool half = in.strong;  // float16 accumulators, two per register
  const int lane0 = std::countr_zero(lanes);
  begin_product(warp, d, static_cast<std::size_t>(d_count), in.option ? a : nullptr);
  T a_values[kWarpRows * kMaxWgmmaK], b_values[kMaxN * kMaxWgmmaK];
  if (in.option)
    read_fragment(warp, a, 4, in.type, true, shape.k, a_values);
  else
    read_matrix(warp, load_raw(warp, a->slot, 8, lane0), in.type, (in.mode & 4) != 0,
                static_cast<int>(warp.number % 4) * kWarpRows, kWarpRows, shape.k, a_values);
  read_matrix(warp, load_raw(warp, b->slot, 8, lane0), in.from, (in.mode & 8) != 0, 0, shape.n, shape.k, b_values);
  if ((in.mode & 1) != 0) negate(a_values, kWarpRows * shape.k);
  if ((in.mode & 2) != 0) negate(b_values, shape.n * shape.k);
  const std::uint32_t keeps = load_predicate(warp, scale->slot);
  for (int first = 0; first < shape.n; first += 8) {
    const Operand* registers = d + (half ? first / 4 : first / 2);
    T sums[kPanel];
    read_panel(warp, registers, half, keeps, sums);
    if constexpr (std::is_same_v<T, std::int32_t>) {
      T products[kPanel] = {};
      add_product(a_values, b_values + first * shape.k, products, kWarpRows, shape.k);
      add_exact(products, kPanel, in.saturate, sums);
    } else {
      add_product(a_values, b_values + first * shape.k, sums, kWarpRows, shape.k);
    }
    write_accumulators(warp, registers, half, kWarpRows, sums, lanes);
  }
  end_product(warp, d, static_cast<std::size_t>(d_count));
  warp.block->counters.tensor_multiply_adds += static_cast<std::uint64_t>(kWarpRows * shape.n * shape.k);
}

void fence_wgmma(Warp& warp, const Instruction&, std::uint32_t) {
  fence_products(warp);
}
void commit_wgmma_group(Warp& warp, const Instruction&, std::uint32_t) {
  commit_products(warp);
}
void wait_wgmma_group(Warp& warp, const Instruction& in, std::uint32_t) {
  wait_for_products(warp, static_cast<std::uint64_t>(in.immediate));
}

bool take_shape(Suffixes& suffixes, WgmmaShape& shape) {
  for (const std::string_view word : suffixes.left()) {
    if (!word.starts_with("m64n")) continue;
    const std::size_t k_at = word.find('k', 4);
    if (k_at == std::string_view::npos || k_at > 7 || word.size() > k_at + 3) return false;
    shape = {0, 0};
    for (char c : word.substr(4, k_at - 4)) shape.n = c >= '0' && c <= '9' ? shape.n * 10 + (c - '0') : 1 << 20;
    for (char c : word.substr(k_at + 1)) shape.k = c >= '0' && c <= '9' ? shape.k * 10 + (c - '0') : 1 << 20;
    suffixes.take(word);
    return shape.n >= 8 && shape.n <= kMaxN && shape.n % 8 == 0;
  }
  return false;
}

bool shape_fits(const WgmmaShape& shape, Type type) {
  switch (type) {
    case Type::kF16:
    case Type::kBF16:
      return shape.k == 16;
    case Type::kTF32:
      return shape.k == 8;
    case Type::kE4M3:
    case Type::kE5M2:
    case Type::kS8:
    case Type::kU8:
      return shape.k == 32;
    default:
      return false;
  }
}

// An immediate operand that must be `no` or `yes`; returns whether it is `yes`.
bool choice(const Decoder& decoder, std::size_t i, std::uint64_t no, std::uint64_t yes) {
  const PtxOperand& operand = decoder.operand(i);
  if (operand.kind != PtxOperand::Kind::kInteger || (operand.value != no && operand.value != yes))
    decoder.fail("an operand must be a constant");
  return operand.value == yes;
}

void decode_wgmma_product(Decoder& decoder) {
  Suffixes& suffixes = decoder.suffixes;
  Instruction& out = decoder.out;
  suffixes.take("sync");
  suffixes.take("aligned");
  WgmmaShape shape{};
  if (!take_shape(suffixes, shape)) decoder.unknown();
  out.saturate = suffixes.take("satfinite");
  const Type d = suffixes.take_type();
  out.type = suffixes.take_type();
  out.from = suffixes.take_type();
  if (!shape_fits(shape, out.type) || bits(out.type) != bits(out.from)) decoder.unknown();
  const bool integer = !is_float(out.type);
  const bool half_accumulators = d == Type::kF16 && out.type != Type::kBF16 && out.type != Type::kTF32;
  if (integer ? d != Type::kS32 : d != Type::kF32 && !half_accumulators) decoder.unknown();
  if (out.saturate && !integer) decoder.unknown();
  out.strong = d == Type::kF16;
  out.handler = integer ? wgmma<std::int32_t> : wgmma<float>;
  out.kind = InstructionClass::kTensor;
  out.control = Control::kWarpSync;
  out.immediate = shape.n | shape.k << 16;
  const PtxOperand &sums = decoder.operand(0), &a = decoder.operand(1);
  out.option = a.kind == PtxOperand::Kind::kVector;
  const std::size_t registers = static_cast<std::size_t>(out.strong ? shape.n / 4 : shape.n / 2);
  if (sums.kind != PtxOperand::Kind::kVector || sums.parts.size() != registers || (out.option && a.parts.size() != 4)) {
    decoder.fail("a fragment has the wrong number of registers");
  }
  // d, a, b, scale-d {, imm-scale-a, imm-scale-b {, imm-trans-a}, imm-trans-b}
  const bool turns = out.type == Type::kF16 || out.type == Type::kBF16;
  const std::size_t wanted = integer ? 4 : !turns ? 6 : out.option ? 7 : 8;
  decoder.expect_operands(wanted, wanted);
  if (!integer) {
    const std::uint64_t minus = ~std::uint64_t{0};
    if (choice(decoder, 4, 1, minus)) out.mode |= 1;
    if (choice(decoder, 5, 1, minus)) out.mode |= 2;
    if (turns && !out.option && choice(decoder, 6, 0, 1)) out.mode |= 4;
    if (turns && choice(decoder, wanted - 1, 0, 1)) out.mode |= 8;
  }
  std::vector<std::pair<Slot, int>> slots;
  for (const PtxOperand& part : sums.parts) slots.emplace_back(decoder.destination(part, 4), 4);
  if (out.option) {
    decoder.note_register_operands();
    for (const PtxOperand& part : a.parts) slots.emplace_back(decoder.source(part, Type::kB32), 4);
  } else {
    slots.emplace_back(decoder.source(a, Type::kB64), 8);
  }
  slots.emplace_back(decoder.source(decoder.operand(2), Type::kB64), 8);
  slots.emplace_back(decoder.predicate_source(decoder.operand(3)), 0);
  decoder.begin_list();
  for (const auto& [slot, width] : slots) decoder.add_to_list(slot, width);
}

}  // namespace

bool decode_wgmma(Decoder& decoder) {
  if (decoder.base() != "wgmma") return false;
  Suffixes& suffixes = decoder.suffixes;
  if (suffixes.take("mma_async")) {
    if (suffixes.has("sp")) decoder.fail("sparse products are not supported", decoder.ptx().opcode);
    decode_wgmma_product(decoder);
    return true;
  }
  decoder.out.kind = InstructionClass::kBarrier;
  decoder.out.control = Control::kWarpSync;
  if (suffixes.take("fence")) {
    decoder.out.handler = fence_wgmma;
  } else if (suffixes.take("commit_group")) {
    decoder.out.handler = commit_wgmma_group;
  } else if (suffixes.take("wait_group")) {
    decoder.expect_operands(1, 1);
    if (decoder.operand(0).kind != PtxOperand::Kind::kInteger) decoder.fail("the number of groups must be a constant");
    decoder.out.immediate = static_cast<std::int64_t>(decoder.operand(0).value & 0xffffffffu);
    decoder.out.handler = wait_wgmma_group;
  } else {
    decoder.unknown();
  }
  suffixes.take("sync");
  suffixes.take("aligned");
  return true;
}

}  // namespace fusec::emulator
