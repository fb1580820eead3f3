// mov: registers, constants, addresses of variables, packing and unpacking of vectors, predicates.
#include "runtime/emulator/decode.h"
#include "runtime/emulator/lanes.h"

namespace fusec::emulator {
namespace {

template <int kWidth>
void move(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  const std::byte* from = warp.source(in.a);
  std::byte* to = warp.lanes(in.d);
  if (lanes == kAllLanes) {
    std::memmove(to, from, kWidth * kLanes);
    return;
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) != 0) std::memmove(to + lane * kWidth, from + lane * kWidth, kWidth);
  }
}

void move_predicate(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  store_predicate(warp, in.d, load_predicate(warp, in.a), lanes);
}

void pack_vector(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    std::byte value[16] = {};
    int at = 0;
    for (std::uint32_t i = 0; i < in.count; ++i) {
      const Operand& part = warp.program->lists[in.list + i];
      std::memcpy(value + at, warp.source(part.slot) + lane * part.width, part.width);
      at += part.width;
    }
    std::memcpy(warp.lanes(in.d) + lane * in.d_width, value, in.d_width);
  }
}

void unpack_vector(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    std::byte value[16] = {};
    std::memcpy(value, warp.source(in.a) + lane * in.a_width, in.a_width);
    int at = 0;
    for (std::uint32_t i = 0; i < in.count; ++i) {
      const Operand& part = warp.program->lists[in.list + i];
      std::memcpy(warp.lanes(part.slot) + lane * part.width, value + at, part.width);
      at += part.width;
    }
  }
}

Handler mover(int width) {
  switch (width) {
    case 1:
      return move<1>;
    case 2:
      return move<2>;
    case 4:
      return move<4>;
    case 8:
      return move<8>;
    case 16:
      return move<16>;
    default:
      return nullptr;
  }
}

Type element_type(int width) {
  return width == 1   ? Type::kB8
         : width == 2 ? Type::kB16
         : width == 4 ? Type::kB32
         : width == 8 ? Type::kB64
                      : Type::kNone;
}

}  // namespace

bool decode_move(Decoder& decoder) {
  if (decoder.base() != "mov") return false;
  Instruction& out = decoder.out;
  out.kind = InstructionClass::kMove;
  const Type type = decoder.suffixes.take_type();
  decoder.expect_operands(2, 2);
  const PtxOperand &to = decoder.operand(0), &from = decoder.operand(1);
  if (type == Type::kPred) {
    out.handler = move_predicate;
    out.d = decoder.predicate_destination(to);
    out.a = decoder.predicate_source(from);
    return true;
  }
  const int width = bytes(type);
  if (mover(width) == nullptr) decoder.unknown();
  if (to.kind == PtxOperand::Kind::kVector || from.kind == PtxOperand::Kind::kVector) {
    const bool packs = from.kind == PtxOperand::Kind::kVector;
    const PtxOperand& vector = packs ? from : to;
    if ((packs && to.kind == PtxOperand::Kind::kVector) || vector.parts.empty() || vector.parts.size() > 16)
      decoder.fail("malformed vector move");
    const int part = width / static_cast<int>(vector.parts.size());
    const Type part_type = element_type(part);
    if (part_type == Type::kNone || part * static_cast<int>(vector.parts.size()) != width)
      decoder.fail("malformed vector move");
    std::vector<Slot> slots;
    for (const PtxOperand& element : vector.parts) {
      slots.push_back(packs ? decoder.source(element, part_type) : decoder.destination(element, part));
    }
    decoder.begin_list();
    for (Slot slot : slots) decoder.add_to_list(slot, part);
    out.handler = packs ? pack_vector : unpack_vector;
    out.d_width = out.a_width = static_cast<std::uint8_t>(width);
    if (packs)
      out.d = decoder.destination(to, width);
    else
      out.a = decoder.source(from, type);
    return true;
  }
  out.handler = mover(width);
  out.d = decoder.destination(to, width);
  out.a = decoder.source(from, type);
  return true;
}

}  // namespace fusec::emulator
