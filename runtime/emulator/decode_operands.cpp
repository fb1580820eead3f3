// Decodes the suffixes and operands of an instruction: registers, constants, special registers, predicates, addresses.
#include <algorithm>
#include <bit>

#include "runtime/emulator/decode.h"
#include "runtime/emulator/lanes.h"
#include "runtime/emulator/ptx_lexer.h"

namespace fusec::emulator {
namespace {

constexpr std::uint64_t kMaxRegisterBytes = 1u << 28;

struct SpecialRow {
  std::string_view name;
  Special special;
};
constexpr SpecialRow kSpecials[] = {
    {"tid.x", Special::kTidX},
    {"tid.y", Special::kTidY},
    {"tid.z", Special::kTidZ},
    {"ntid.x", Special::kNtidX},
    {"ntid.y", Special::kNtidY},
    {"ntid.z", Special::kNtidZ},
    {"ctaid.x", Special::kCtaidX},
    {"ctaid.y", Special::kCtaidY},
    {"ctaid.z", Special::kCtaidZ},
    {"nctaid.x", Special::kNctaidX},
    {"nctaid.y", Special::kNctaidY},
    {"nctaid.z", Special::kNctaidZ},
    {"laneid", Special::kLaneId},
    {"warpid", Special::kWarpId},
    {"nwarpid", Special::kNwarpId},
    {"smid", Special::kSmId},
    {"nsmid", Special::kNsmId},
    {"gridid", Special::kGridId},
    {"lanemask_eq", Special::kLanemaskEq},
    {"lanemask_le", Special::kLanemaskLe},
    {"lanemask_lt", Special::kLanemaskLt},
    {"lanemask_ge", Special::kLanemaskGe},
    {"lanemask_gt", Special::kLanemaskGt},
    {"clusterid.x", Special::kClusterIdX},
    {"clusterid.y", Special::kClusterIdY},
    {"clusterid.z", Special::kClusterIdZ},
    {"nclusterid.x", Special::kNclusterIdX},
    {"nclusterid.y", Special::kNclusterIdY},
    {"nclusterid.z", Special::kNclusterIdZ},
    {"cluster_ctaid.x", Special::kClusterCtaidX},
    {"cluster_ctaid.y", Special::kClusterCtaidY},
    {"cluster_ctaid.z", Special::kClusterCtaidZ},
    {"cluster_nctaid.x", Special::kClusterNctaidX},
    {"cluster_nctaid.y", Special::kClusterNctaidY},
    {"cluster_nctaid.z", Special::kClusterNctaidZ},
    {"cluster_ctarank", Special::kClusterCtarank},
    {"cluster_nctarank", Special::kClusterNctarank},
    {"total_smem_size", Special::kTotalShared},
    {"dynamic_smem_size", Special::kDynamicShared},
    {"aggr_smem_size", Special::kTotalShared},
};
void read_clock(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) != 0) store_raw(warp, in.d, in.d_width, lane, warp.executed * 4);
  }
}

void invert_predicate(Warp& warp, const Instruction& in, std::uint32_t) {
  store_predicate(warp, in.d, ~load_predicate(warp, in.a), kAllLanes);
}

}  // namespace

// ---- suffixes

bool Suffixes::take(std::string_view word) {
  const auto found = std::find(left_.begin(), left_.end(), word);
  if (found == left_.end()) return false;
  left_.erase(found);
  return true;
}

bool Suffixes::has(std::string_view word) const {
  return std::find(left_.begin(), left_.end(), word) != left_.end();
}

Type Suffixes::take_type() {
  for (auto at = left_.begin(); at != left_.end(); ++at) {
    if (const std::optional<Type> type = parse_type(*at)) {
      left_.erase(at);
      return *type;
    }
  }
  return Type::kNone;
}

std::optional<Rounding> Suffixes::take_rounding() {
  if (take("rn")) return Rounding::kNearestEven;
  if (take("rz")) return Rounding::kZero;
  if (take("rm")) return Rounding::kDown;
  if (take("rp")) return Rounding::kUp;
  if (take("rna")) return Rounding::kNearestAway;
  return std::nullopt;
}

std::optional<Rounding> Suffixes::take_integral_rounding() {
  if (take("rni")) return Rounding::kNearestEven;
  if (take("rzi")) return Rounding::kZero;
  if (take("rmi")) return Rounding::kDown;
  if (take("rpi")) return Rounding::kUp;
  return std::nullopt;
}
// ---- decoder

void Decoder::fail(std::string what, std::string found, std::string expected) const {
  if (found.empty()) found = ptx_->opcode;
  throw_ptx_error(module_.ptx.file, ptx_->line, std::move(what), std::move(found), std::move(expected));
}

const PtxOperand& Decoder::operand(std::size_t i) const {
  if (i >= ptx_->operands.size()) fail("too few operands");
  return ptx_->operands[i];
}

void Decoder::expect_operands(std::size_t least, std::size_t most) const {
  if (operands() < least) fail("too few operands");
  if (operands() > most) fail("too many operands");
}

Slot Decoder::allocate(int lane_bytes) {
  const std::uint64_t size = lane_bytes == 0 ? 32 : static_cast<std::uint64_t>(lane_bytes) * kLanes;
  if (program_.register_bytes + size > kMaxRegisterBytes) fail("too many registers");
  const Slot slot = program_.register_bytes;
  program_.register_bytes += static_cast<std::uint32_t>(size);
  return slot;
}

Slot Decoder::scratch(int width) {
  return allocate(width);
}

Slot Decoder::constant(std::uint64_t value, int width) {
  const auto [at, fresh] = constants_.try_emplace({value, width}, 0);
  if (!fresh) return at->second;
  const std::size_t offset = align_up(program_.constants.size(), 32);
  program_.constants.resize(offset + static_cast<std::size_t>(std::max(width * kLanes, 4)));
  for (int lane = 0; lane < kLanes && width > 0; ++lane) {
    std::memcpy(&program_.constants[offset + static_cast<std::size_t>(lane * width)], &value,
                static_cast<std::size_t>(std::min(width, 8)));
  }
  if (width == 0) {  // a predicate
    const std::uint32_t mask = value != 0 ? kAllLanes : 0;
    std::memcpy(&program_.constants[offset], &mask, sizeof(mask));
  }
  if (offset >= kConstantBit) fail("too many constants");
  return at->second = static_cast<Slot>(offset) | kConstantBit;
}

int Decoder::register_width(const PtxOperand& operand) const {
  if (operand.kind != PtxOperand::Kind::kRegister) return -1;
  const Type type = module_.ptx.functions[function_].registers[operand.index].type;
  return type == Type::kPred ? 0 : bytes(type);
}

Slot Decoder::destination(const PtxOperand& operand, int width) {
  if (operand.kind == PtxOperand::Kind::kSink) return scratch(width);
  const int found = register_width(operand);
  if (found != width) fail("the destination is no register of the instruction's width");
  return flow_.writes.emplace_back(frames_[function_].registers[operand.index]);
}

Slot Decoder::destination(const PtxOperand& operand, int least, std::uint8_t& width) {
  if (operand.kind == PtxOperand::Kind::kSink) {
    width = static_cast<std::uint8_t>(least);
    return scratch(least);
  }
  const int found = register_width(operand);
  if (found < least || found == 0) fail("the destination is no register of the instruction's width");
  width = static_cast<std::uint8_t>(found);
  return flow_.writes.emplace_back(frames_[function_].registers[operand.index]);
}

std::uint64_t Decoder::immediate(const PtxOperand& operand, Type type) const {
  const std::uint64_t value = operand.value;
  if (operand.kind == PtxOperand::Kind::kInteger) {
    // Hand-written PTX may use integers as operands of floating-point instructions.
    if (type == Type::kF32) return std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int64_t>(value)));
    if (type == Type::kF64) {
      return std::bit_cast<std::uint64_t>(static_cast<double>(static_cast<std::int64_t>(value)));
    }
    return value;
  }
  if (operand.kind == PtxOperand::Kind::kFloat32) {
    if (type != Type::kF64) return value;
    return std::bit_cast<std::uint64_t>(static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(value))));
  }
  if (type == Type::kF64 || type == Type::kB64) return value;
  const double number = std::bit_cast<double>(value);
  if (type == Type::kF16) return encode_float(number, kHalf, Rounding::kNearestEven);
  if (type == Type::kBF16) return encode_float(number, kBFloat, Rounding::kNearestEven);
  return std::bit_cast<std::uint32_t>(static_cast<float>(number));
}

Slot Decoder::source(const PtxOperand& operand, Type type) {
  std::uint8_t width = 0;
  const Slot slot = source_any(operand, type, width);
  if (width != bytes(type)) fail("an operand's register is not of the instruction's width");
  return slot;
}

Slot Decoder::source_any(const PtxOperand& operand, Type type, std::uint8_t& width) {
  const Slot slot = source_slot(operand, type, width);
  flow_.reads.push_back({slot, width, false});
  return slot;
}

Slot Decoder::source_slot(const PtxOperand& operand, Type type, std::uint8_t& width) {
  width = static_cast<std::uint8_t>(bytes(type));
  if (operand.negated) fail("only predicates can be negated");
  switch (operand.kind) {
    case PtxOperand::Kind::kRegister: {
      const int found = register_width(operand);
      if (found < width) fail("an operand's register is not of the instruction's width");
      width = static_cast<std::uint8_t>(found);
      return frames_[function_].registers[operand.index];
    }
    case PtxOperand::Kind::kSpecial:
      return special(operand, width);
    case PtxOperand::Kind::kInteger:
    case PtxOperand::Kind::kFloat:
    case PtxOperand::Kind::kFloat32:
      return constant(immediate(operand, type), width);
    case PtxOperand::Kind::kVariable: {
      Space space = Space::kGeneric;
      return constant(variable_address(operand, space), width);
    }
    case PtxOperand::Kind::kName:
      fail("unknown name", operand.name);
    default:
      fail("an operand is of the wrong kind");
  }
}

Slot Decoder::special(const PtxOperand& operand, int width) {
  if (operand.name == "clock" || operand.name == "clock_hi" || operand.name == "clock64" ||
      operand.name == "globaltimer" || operand.name == "globaltimer_lo" || operand.name == "globaltimer_hi") {
    Instruction read{.handler = read_clock, .d = scratch(width), .d_width = static_cast<std::uint8_t>(width)};
    if (operand.name.ends_with("_hi")) return constant(0, width);
    emit(read);
    return read.d;
  }
  Special found = Special::kZero;
  bool known = operand.name.starts_with("envreg") || operand.name.starts_with("pm") ||
               operand.name.starts_with("reserved_smem_offset") || operand.name.starts_with("current_graph_exec");
  for (const SpecialRow& row : kSpecials) {
    if (row.name != operand.name) continue;
    found = row.special;
    known = true;
  }
  if (!known) fail("unknown special register", "%" + operand.name);
  if (found == Special::kZero) return constant(0, width);
  auto [at, fresh] = specials_.try_emplace(found, 0);
  if (fresh) {
    at->second = scratch(4);
    program_.specials.emplace_back(found, at->second);
  }
  if (width == 4) return at->second;
  // Convert to a width other than 32 bits.
  const Slot wide = scratch(width);
  emit({.handler =
            [](Warp& warp, const Instruction& in, std::uint32_t lanes) {
              for (int lane = 0; lane < kLanes; ++lane) {
                if ((lanes >> lane & 1) != 0) store_raw(warp, in.d, in.d_width, lane, load_raw(warp, in.a, 4, lane));
              }
            },
        .d = wide,
        .a = at->second,
        .d_width = static_cast<std::uint8_t>(width)});
  return wide;
}

Slot Decoder::predicate_destination(const PtxOperand& operand) {
  if (operand.kind == PtxOperand::Kind::kSink) return scratch(0);
  if (!is_predicate(operand)) fail("a predicate register is needed");
  return flow_.writes.emplace_back(frames_[function_].registers[operand.index]);
}

Slot Decoder::predicate_source(const PtxOperand& operand) {
  if (operand.kind == PtxOperand::Kind::kInteger) {
    const Slot fixed = constant((operand.value != 0) != operand.negated ? 1 : 0, 0);
    flow_.reads.push_back({fixed, 0, false});
    return fixed;
  }
  if (!is_predicate(operand)) fail("a predicate is needed");
  const Slot slot = frames_[function_].registers[operand.index];
  flow_.reads.push_back({slot, 0, operand.negated});
  if (!operand.negated) return slot;
  const Slot inverted = scratch(0);
  emit({.handler = invert_predicate, .d = inverted, .a = slot});
  return inverted;
}

void Decoder::begin_list() {
  out.list = static_cast<std::uint32_t>(program_.lists.size());
  out.count = 0;
}

void Decoder::add_to_list(Slot slot, int width) {
  program_.lists.push_back({slot, static_cast<std::uint8_t>(width)});
  ++out.count;
}

Space Decoder::address(const PtxOperand& operand, Space space) {
  if (operand.kind != PtxOperand::Kind::kAddress) fail("an address is needed");
  const PtxOperand& base = operand.parts[0];
  out.immediate = operand.offset;
  if (base.kind == PtxOperand::Kind::kVariable) {
    Space found = space;
    const std::uint64_t at = variable_address(base, found);
    out.a = constant(at, 8);
    out.a_width = 8;
    if (space == Space::kParam) return found;
    // A generic access to a named variable: add the window's address.
    if (space == Space::kGeneric) {
      // Wraps, since the offset may be any number.
      std::uint64_t window_start = 0;
      if (found == Space::kShared) window_start = kSharedWindow;
      if (found == Space::kLocal) window_start = kLocalWindow;
      if (found == Space::kParam) window_start = kParamWindow;
      if (found == Space::kConst) window_start = kConstWindow;
      out.immediate = static_cast<std::int64_t>(static_cast<std::uint64_t>(out.immediate) + window_start);
    }
    return space;
  }
  if (base.kind == PtxOperand::Kind::kInteger) {
    out.a = constant(base.value, 8);
    out.a_width = 8;
  } else {
    out.a = source_any(base, Type::kB32, out.a_width);
  }
  if (space == Space::kParam && !module_.ptx.functions[function_].is_entry) return Space::kLocal;
  return space;
}

void Decoder::emit(const Instruction& instruction) {
  program_.code.push_back(instruction);
  program_.flows.emplace_back();
  program_.origins.push_back(
      {.line = ptx_->line, .source_file = ptx_->source_file, .source_line = ptx_->source_line, .opcode = ptx_->opcode});
}

}  // namespace fusec::emulator
