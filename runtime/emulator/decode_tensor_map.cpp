// tensormap.replace and tensormap.cp_fenceproxy: tensor maps that a kernel builds.
#include <array>
#include <bit>

#include "runtime/emulator/access.h"
#include "runtime/emulator/decode.h"
#include "runtime/emulator/lanes.h"
#include "runtime/emulator/tensor_map.h"

namespace fusec::emulator {
namespace {

constexpr std::uint32_t kPiece = 64;  // bytes per access

using MapBytes = std::array<std::byte, kTensorMapBytes>;

bool read_map(Warp& warp, int lane, Space space, std::uint64_t address, MapBytes& map) {
  for (std::uint32_t at = 0; at < kTensorMapBytes; at += kPiece) {
    Addresses addresses = {};
    Hosts hosts = {};
    addresses[lane] = address + at;
    resolve(warp, {.space = space, .bytes = kPiece}, 1u << lane, addresses, hosts);
    if (hosts[lane] == nullptr) return false;
    std::memcpy(&map[at], hosts[lane], kPiece);
  }
  return true;
}

void write_map(Warp& warp, int lane, Space space, std::uint64_t address, const MapBytes& map) {
  for (std::uint32_t at = 0; at < kTensorMapBytes; at += kPiece) {
    Addresses addresses = {};
    Hosts hosts = {};
    addresses[lane] = address + at;
    // A request holds the data of all lanes; only this lane's part is used.
    std::array<std::byte, kLanes * kPiece> data{};
    std::memcpy(&data[static_cast<std::size_t>(lane) * kPiece], &map[at], kPiece);
    resolve(warp, {.access = Access::kWrite, .space = space, .bytes = kPiece, .data = data.data(), .stride = kPiece},
            1u << lane, addresses, hosts);
    if (hosts[lane] != nullptr) std::memcpy(hosts[lane], &map[at], kPiece);
  }
}

void replace(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  Addresses addresses;
  gather_addresses(warp, in, addresses);
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    MapBytes map;
    if (!read_map(warp, lane, in.space, addresses[lane], map)) continue;
    const std::uint64_t value = load_raw(warp, in.b, in.b_width, lane);
    if (!replace_field(map, static_cast<TensorMapField>(in.mode), in.target, value)) {
      report(warp, lane, FindingKind::kTrap, "tensormap.replace with a value that the field cannot have", value);
      continue;
    }
    write_map(warp, lane, in.space, addresses[lane], map);
  }
}

// The warp's lanes together make one copy.
void copy_map(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  Addresses targets;
  gather_addresses(warp, in, targets);
  const int lane = std::countr_zero(lanes);
  const std::uint64_t source =
      load_raw(warp, in.b, in.b_width, lane) + static_cast<std::uint64_t>(static_cast<std::int32_t>(in.target));
  MapBytes map;
  if (read_map(warp, lane, Space::kShared, source, map)) write_map(warp, lane, Space::kGlobal, targets[lane], map);
}

struct FieldRow {
  std::string_view word;
  TensorMapField field;
  bool has_dimension = false;
};
constexpr FieldRow kFields[] = {
    {"global_address", TensorMapField::kGlobalAddress}, {"rank", TensorMapField::kRank},
    {"box_dim", TensorMapField::kBoxExtent, true},      {"global_dim", TensorMapField::kExtent, true},
    {"global_stride", TensorMapField::kStride, true},   {"element_stride", TensorMapField::kElementStride, true},
    {"elemtype", TensorMapField::kElementType},         {"interleave_layout", TensorMapField::kInterleave},
    {"swizzle_mode", TensorMapField::kSwizzle},         {"fill_mode", TensorMapField::kFill}};

// tensormap.replace.tile.FIELD.SPACE.b1024.TYPE [address], {dimension,} value
void decode_replace(Decoder& decoder) {
  Suffixes& suffixes = decoder.suffixes;
  Instruction& out = decoder.out;
  if (!suffixes.take("tile")) decoder.unknown();
  bool has_dimension = false, found = false;
  for (const FieldRow& row : kFields) {
    if (!suffixes.take(row.word)) continue;
    out.mode = static_cast<std::uint16_t>(row.field);
    has_dimension = row.has_dimension;
    found = true;
  }
  if (!found) decoder.unknown();
  out.space = Space::kGeneric;
  if (suffixes.take("global")) out.space = Space::kGlobal;
  if (suffixes.take("shared::cta")) out.space = Space::kShared;
  if (!suffixes.take("b1024")) decoder.unknown();
  const Type type = suffixes.take_type();
  if (type != Type::kB32 && type != Type::kB64) decoder.unknown();
  const std::size_t wanted = has_dimension ? 3 : 2;
  decoder.expect_operands(wanted, wanted);
  if (has_dimension) {
    const PtxOperand& dimension = decoder.operand(1);
    if (dimension.kind != PtxOperand::Kind::kInteger || dimension.value > 4)
      decoder.fail("the dimension must be a constant, 0 to 4");
    out.target = static_cast<std::uint32_t>(dimension.value);
  }
  out.space = decoder.address(decoder.operand(0), out.space);
  out.b_width = static_cast<std::uint8_t>(bytes(type));
  out.b = decoder.source(decoder.operand(wanted - 1), type);
  out.handler = replace;
}

// tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.SCOPE.sync.aligned [global], [shared], 128
void decode_map_copy(Decoder& decoder) {
  Suffixes& suffixes = decoder.suffixes;
  Instruction& out = decoder.out;
  for (std::string_view word : {"global", "shared::cta", "tensormap::generic", "release", "sync", "aligned"}) {
    if (!suffixes.take(word)) decoder.unknown();
  }
  for (std::string_view scope : {"cta", "cluster", "gpu", "sys"}) suffixes.take(scope);
  decoder.expect_operands(3, 3);
  const PtxOperand& size = decoder.operand(2);
  if (size.kind != PtxOperand::Kind::kInteger || size.value != kTensorMapBytes) decoder.fail("the size must be 128");
  decoder.address(decoder.operand(1), Space::kShared);
  out.b = out.a;
  out.b_width = out.a_width;
  out.target = static_cast<std::uint32_t>(out.immediate);
  decoder.address(decoder.operand(0), Space::kGlobal);
  out.control = Control::kWarpSync;
  out.handler = copy_map;
}

}  // namespace

bool decode_tensor_map(Decoder& decoder) {
  if (decoder.base() != "tensormap") return false;
  decoder.out.kind = InstructionClass::kLoadStore;
  if (decoder.suffixes.take("replace"))
    decode_replace(decoder);
  else if (decoder.suffixes.take("cp_fenceproxy"))
    decode_map_copy(decoder);
  else
    decoder.unknown();
  return true;
}

}  // namespace fusec::emulator
