#include "runtime/emulator/decode.h"

#include <algorithm>
#include <bit>

#include "ir/error.h"
#include "runtime/emulator/lanes.h"
#include "runtime/emulator/ptx_lexer.h"

namespace fusec::emulator {
namespace {

constexpr std::uint64_t kGap = 128;  // bytes between variables that nothing may touch; keeps the banks
constexpr std::uint64_t kMaxRegisterBytes = 1u << 28;
constexpr std::uint64_t kMaxLocalBytes = 1u << 24;

std::uint64_t align_up(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

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

void copy_local(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  const std::uint64_t stride = warp.program->local_bytes;
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    const std::uint64_t from = lane * stride + static_cast<std::uint64_t>(in.immediate);
    const std::uint64_t to = lane * stride + in.target;
    std::memmove(&warp.local[to], &warp.local[from], in.reconvergence);
    std::memmove(&warp.local_written[to], &warp.local_written[from], in.reconvergence);
  }
}

// Assertions and printing, which device code may call though no PTX defines them.
void failed_assertion(Warp& warp, const Instruction&, std::uint32_t lanes) {
  report(warp, std::countr_zero(lanes), FindingKind::kTrap, "a device assertion failed");
}
void ignore(Warp&, const Instruction&, std::uint32_t) {}

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

Decoder::Decoder(const ModuleData& module, Program& program, std::size_t functions)
    : module_(module), program_(program), frames_(functions) {}

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
  return frames_[function_].registers[operand.index];
}

Slot Decoder::destination(const PtxOperand& operand, int least, std::uint8_t& width) {
  if (operand.kind == PtxOperand::Kind::kSink) {
    width = static_cast<std::uint8_t>(least);
    return scratch(least);
  }
  const int found = register_width(operand);
  if (found < least || found == 0) fail("the destination is no register of the instruction's width");
  width = static_cast<std::uint8_t>(found);
  return frames_[function_].registers[operand.index];
}

std::uint64_t Decoder::immediate(const PtxOperand& operand, Type type) const {
  const std::uint64_t value = operand.value;
  if (operand.kind == PtxOperand::Kind::kInteger) {
    // Integers stand for themselves in floating-point instructions of hand-written PTX too.
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
  // Another width than 32 bits: converted on the spot.
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
  return frames_[function_].registers[operand.index];
}

Slot Decoder::predicate_source(const PtxOperand& operand) {
  if (operand.kind == PtxOperand::Kind::kInteger) return constant((operand.value != 0) != operand.negated ? 1 : 0, 0);
  if (!is_predicate(operand)) fail("a predicate is needed");
  const Slot slot = frames_[function_].registers[operand.index];
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
    // A generic access names the variable itself: the window is ours to add.
    if (space == Space::kGeneric) {
      if (found == Space::kShared) out.immediate += static_cast<std::int64_t>(kSharedWindow);
      if (found == Space::kLocal) out.immediate += static_cast<std::int64_t>(kLocalWindow);
      if (found == Space::kParam) out.immediate += static_cast<std::int64_t>(kParamWindow);
      if (found == Space::kConst) out.immediate += static_cast<std::int64_t>(kConstWindow);
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
  program_.origins.push_back(
      {.line = ptx_->line, .source_file = ptx_->source_file, .source_line = ptx_->source_line, .opcode = ptx_->opcode});
}

// ---- placement

std::uint64_t Decoder::place_shared(const PtxVariable& variable) {
  const auto alignment = static_cast<std::uint64_t>(variable.alignment);
  const std::uint64_t offset = align_up(program_.shared_bytes, alignment);
  if (offset + variable.bytes > (1u << kRankShift)) fail("shared memory too large", variable.name);
  program_.shared.push_back({variable.name, offset, variable.bytes});
  program_.shared_bytes = align_up(offset + variable.bytes + kGap, kGap);
  program_.declared_shared_bytes = align_up(program_.declared_shared_bytes, alignment) + variable.bytes;
  return offset;
}

std::uint64_t Decoder::place_local(const PtxVariable& variable) {
  const std::uint64_t offset = align_up(program_.local_bytes, std::max(16, variable.alignment));
  if (variable.bytes > kMaxLocalBytes || offset + variable.bytes > kMaxLocalBytes) {
    fail("local memory too large", variable.name);
  }
  program_.local.push_back({variable.name, offset, variable.bytes});
  program_.local_bytes = align_up(offset + variable.bytes + 16, 16);
  return offset;
}

void Decoder::place_function(std::uint32_t function) {
  const PtxFunction& ptx = module_.ptx.functions[function];
  Frame& frame = frames_[function];
  PtxInstruction at_head{.opcode = ptx.name, .line = ptx.line};
  ptx_ = &at_head;
  frame.placed = true;
  frame.registers.reserve(ptx.registers.size());
  for (const PtxRegister& reg : ptx.registers) {
    frame.registers.push_back(allocate(reg.type == Type::kPred ? 0 : bytes(reg.type)));
  }
  if (!ptx.is_entry) frame.return_address = allocate(4);
  function_ = function;
  place_variables(function);
  ptx_ = nullptr;
}

void Decoder::place_variables(std::uint32_t function) {
  const PtxFunction& ptx = module_.ptx.functions[function];
  Frame& frame = frames_[function];
  std::vector<bool> is_parameter(ptx.variables.size(), false);
  if (ptx.is_entry) {
    for (std::uint32_t index : ptx.parameters) is_parameter[index] = true;
  }
  for (std::size_t i = 0; i < ptx.variables.size(); ++i) {
    const PtxVariable& variable = ptx.variables[i];
    std::uint64_t offset = 0;
    switch (variable.space) {
      case Space::kShared:
        offset = variable.is_extern && variable.bytes == 0 ? 0 : place_shared(variable);
        break;
      case Space::kParam:
        if (is_parameter[i]) {
          offset = align_up(program_.parameter_bytes, static_cast<std::uint64_t>(variable.alignment));
          program_.parameter_bytes = offset + variable.bytes;
          if (program_.parameter_bytes > (1u << 16)) fail("too many parameter bytes");
          program_.parameters.push_back({variable.name, offset, variable.bytes});
          break;
        }
        offset = place_local(variable);
        break;
      case Space::kLocal:
        offset = place_local(variable);
        break;
      default:
        fail("a variable of this space cannot stand in a function", variable.name);
    }
    frame.variables.push_back(offset);
  }
}

std::uint64_t Decoder::variable_address(const PtxOperand& operand, Space& space) {
  const auto offset = static_cast<std::uint64_t>(operand.offset);
  if (!operand.global) {
    const PtxFunction& ptx = module_.ptx.functions[function_];
    const PtxVariable& variable = ptx.variables[operand.index];
    space = variable.space;
    if (space == Space::kParam) {
      const bool is_parameter = ptx.is_entry && std::find(ptx.parameters.begin(), ptx.parameters.end(),
                                                          operand.index) != ptx.parameters.end();
      if (!is_parameter) space = Space::kLocal;
    }
    if (space == Space::kShared && variable.is_extern && variable.bytes == 0) {
      return program_.dynamic_shared_offset + offset;
    }
    return frames_[function_].variables[operand.index] + offset;
  }
  const PtxVariable& variable = module_.ptx.variables[operand.index];
  space = variable.space;
  switch (space) {
    case Space::kGlobal:
      if (variable.is_extern) fail("a variable that the module does not define", variable.name);
      return kModuleWindow + (module_.global_numbers[operand.index] << kRegionShift) + kRegionBase + offset;
    case Space::kConst:
      return module_.constant_offsets[operand.index] + offset;
    case Space::kShared: {
      if (variable.is_extern && variable.bytes == 0) return program_.dynamic_shared_offset + offset;
      const auto found = module_shared_.find(operand.index);
      if (found == module_shared_.end()) fail("shared variable without a place", variable.name);
      return found->second + offset;
    }
    default:
      fail("a variable of this space cannot stand in a module", variable.name);
  }
}

std::vector<std::uint32_t> Decoder::calls_of(std::uint32_t function) const {
  std::vector<std::uint32_t> callees;
  for (const PtxInstruction& instruction : module_.ptx.functions[function].instructions) {
    if (instruction.base != "call") continue;
    for (const PtxOperand& operand : instruction.operands) {
      if (operand.kind != PtxOperand::Kind::kName) continue;
      for (std::uint32_t i = 0; i < module_.ptx.functions.size(); ++i) {
        if (module_.ptx.functions[i].name == operand.name && module_.ptx.functions[i].has_body) callees.push_back(i);
      }
    }
  }
  return callees;
}

// ---- code

void Decoder::decode_function(std::uint32_t function) {
  const PtxFunction& ptx = module_.ptx.functions[function];
  function_ = function;
  Frame& frame = frames_[function];
  frame.begin = static_cast<std::uint32_t>(program_.code.size());
  std::vector<std::uint32_t> pcs;
  pcs.reserve(ptx.instructions.size() + 1);
  for (const PtxInstruction& instruction : ptx.instructions) {
    pcs.push_back(static_cast<std::uint32_t>(program_.code.size()));
    decode_instruction(instruction);
  }
  pcs.push_back(static_cast<std::uint32_t>(program_.code.size()));
  // Falling off the end is returning.
  PtxInstruction at_end{
      .opcode = "ret", .base = "ret", .line = ptx.instructions.empty() ? ptx.line : ptx.instructions.back().line};
  decode_instruction(at_end);
  frame.end = static_cast<std::uint32_t>(program_.code.size());
  for (std::uint32_t pc = frame.begin; pc < frame.end; ++pc) {
    Instruction& instruction = program_.code[pc];
    if (instruction.control == Control::kBranch) instruction.target = pcs[instruction.target];
    if (instruction.control != Control::kBranchIndexed) continue;
    for (std::uint32_t i = 0; i < instruction.count; ++i) {
      Operand& target = program_.lists[instruction.list + i];
      target.slot = pcs[target.slot];
    }
  }
  find_reconvergence(program_.code, program_.lists, frame.begin, frame.end, ptx.is_entry);
}

void Decoder::decode_instruction(const PtxInstruction& instruction) {
  ptx_ = &instruction;
  out = Instruction{};
  suffixes.reset(instruction.suffixes);
  if (instruction.guarded) {
    PtxOperand guard{.kind = PtxOperand::Kind::kRegister, .index = instruction.guard};
    out.guard = predicate_source(guard);
    out.guard_negated = instruction.guard_negated;
  }
  if (instruction.base == "call") return decode_call();
  const bool known = decode_move(*this) || decode_integer(*this) || decode_float(*this) || decode_half(*this) ||
                     decode_memory(*this) || decode_logic(*this) || decode_compare(*this) || decode_convert(*this) ||
                     decode_control(*this) || decode_warp(*this) || decode_atomic(*this) || decode_matrix(*this) ||
                     decode_mbarrier(*this) || decode_bulk(*this) || decode_wgmma(*this) || decode_cluster(*this) ||
                     decode_async(*this);
  if (!known || !suffixes.empty()) unknown();
  if (out.control == Control::kReturn) {
    const Frame& frame = frames_[function_];
    if (frame.return_address == kNoSlot)
      out.control = Control::kExit;
    else
      out.a = frame.return_address;
  }
  emit(out);
}

void Decoder::copy_parameter(std::uint64_t from, std::uint64_t to, std::uint64_t size) {
  emit({.handler = copy_local,
        .guard = out.guard,
        .immediate = static_cast<std::int64_t>(from),
        .target = static_cast<std::uint32_t>(to),
        .reconvergence = static_cast<std::uint32_t>(size),
        .guard_negated = out.guard_negated,
        .kind = InstructionClass::kControl});
}

// call (results), function, (parameters); the lists may be missing.
void Decoder::decode_call() {
  suffixes.take("uni");
  if (!suffixes.empty()) unknown();
  std::vector<const PtxOperand*> lists;
  const PtxOperand* callee = nullptr;
  std::size_t lists_before = 0;
  for (std::size_t i = 0; i < operands(); ++i) {
    if (operand(i).kind == PtxOperand::Kind::kVector)
      lists.push_back(&operand(i));
    else if (callee == nullptr) {
      callee = &operand(i);
      lists_before = lists.size();
    }
  }
  if (callee == nullptr || callee->kind != PtxOperand::Kind::kName) fail("indirect calls are not supported");
  out.kind = InstructionClass::kControl;
  if (callee->name == "__assertfail" || callee->name == "vprintf") {
    out.handler = callee->name == "vprintf" ? ignore : failed_assertion;
    return emit(out);
  }
  std::uint32_t target = 0;
  while (target < module_.ptx.functions.size() && module_.ptx.functions[target].name != callee->name) ++target;
  if (target == module_.ptx.functions.size() || !module_.ptx.functions[target].has_body) {
    fail("call of a function that the module does not define", callee->name);
  }
  const PtxFunction& function = module_.ptx.functions[target];
  static const std::vector<PtxOperand> kNone;
  const std::vector<PtxOperand>& results = lists_before > 0 ? lists[0]->parts : kNone;
  const std::vector<PtxOperand>& arguments = lists.size() > lists_before ? lists[lists_before]->parts : kNone;
  if (results.size() != function.results.size() || arguments.size() != function.parameters.size()) {
    fail("the call's parameters do not match the function's");
  }
  const auto place = [&](const PtxOperand& variable, const PtxVariable& wanted) {
    Space space = Space::kGeneric;
    if (variable.kind != PtxOperand::Kind::kVariable) fail("parameters of a call must be .param variables");
    const std::uint64_t offset = variable_address(variable, space);
    if (space != Space::kLocal) fail("parameters of a call must be .param variables");
    const PtxVariable& given = module_.ptx.functions[function_].variables[variable.index];
    if (given.bytes < wanted.bytes) fail("a parameter of the call is too small");
    return offset;
  };
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::uint32_t index = function.parameters[i];
    copy_parameter(place(arguments[i], function.variables[index]), frames_[target].variables[index],
                   function.variables[index].bytes);
  }
  out.control = Control::kCall;
  out.d = frames_[target].return_address;
  calls_.push_back({static_cast<std::uint32_t>(program_.code.size()), target});
  emit(out);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::uint32_t index = function.results[i];
    copy_parameter(frames_[target].variables[index], place(results[i], function.variables[index]),
                   function.variables[index].bytes);
  }
}

void Decoder::finish() {
  for (const Fixup& fixup : calls_) program_.code[fixup.pc].target = frames_[fixup.function].begin;
}

// ---- the whole kernel

namespace {

// The functions that `entry` reaches, itself first. Throws where they call each other in a circle: frames are static.
std::vector<std::uint32_t> reachable_functions(const Decoder& decoder, const PtxModule& module, std::uint32_t entry) {
  std::vector<std::uint32_t> order{entry};
  std::map<std::uint32_t, std::vector<std::uint32_t>> callees;
  std::map<std::uint32_t, std::size_t> callers;
  for (std::size_t i = 0; i < order.size(); ++i) {
    callees[order[i]] = decoder.calls_of(order[i]);
    for (std::uint32_t callee : callees[order[i]]) {
      if (++callers[callee] == 1) order.push_back(callee);
    }
  }
  std::vector<std::uint32_t> ready{entry};
  std::size_t done = 0;
  if (callers[entry] != 0) ready.clear();
  while (!ready.empty()) {
    const std::uint32_t function = ready.back();
    ready.pop_back();
    ++done;
    for (std::uint32_t callee : callees[function]) {
      if (--callers[callee] == 0) ready.push_back(callee);
    }
  }
  if (done != order.size()) {
    throw_ptx_error(module.file, module.functions[entry].line, "recursive functions are not supported");
  }
  return order;
}

}  // namespace

void place_module_shared(const ModuleData& module, const std::vector<std::uint32_t>& functions,
                         std::vector<std::uint32_t>& used) {
  std::vector<bool> seen(module.ptx.variables.size(), false);
  const auto visit = [&](const PtxOperand& operand) {
    if (operand.kind == PtxOperand::Kind::kVariable && operand.global &&
        module.ptx.variables[operand.index].space == Space::kShared) {
      seen[operand.index] = true;
    }
  };
  for (std::uint32_t function : functions) {
    for (const PtxInstruction& instruction : module.ptx.functions[function].instructions) {
      for (const PtxOperand& operand : instruction.operands) {
        visit(operand);
        for (const PtxOperand& part : operand.parts) visit(part);
      }
    }
  }
  for (std::uint32_t i = 0; i < seen.size(); ++i) {
    if (seen[i]) used.push_back(i);
  }
}

Program decode_kernel(const ModuleData& module, std::string_view kernel) {
  std::uint32_t entry = 0;
  const std::vector<PtxFunction>& functions = module.ptx.functions;
  while (entry < functions.size() && (functions[entry].name != kernel || !functions[entry].is_entry)) ++entry;
  if (entry == functions.size() || !functions[entry].has_body) {
    std::string known;
    for (const PtxFunction& function : functions) {
      if (function.is_entry) known += (known.empty() ? "" : ", ") + function.name;
    }
    throw Error(ErrorKind::kInput, {.file = module.ptx.file,
                                    .what = "no such kernel",
                                    .found = std::string(kernel),
                                    .expected = known.empty() ? "a file with kernels" : "one of " + known});
  }
  Program program;
  program.kernel = std::string(kernel);
  program.required_threads = functions[entry].required_threads;
  program.max_threads = functions[entry].max_threads;
  program.required_cluster = functions[entry].required_cluster;
  Decoder decoder(module, program, functions.size());
  const std::vector<std::uint32_t> order = reachable_functions(decoder, module.ptx, entry);
  decoder.place_module_variables(order);
  for (std::uint32_t function : order) decoder.place_function(function);
  // Dynamic shared memory follows the static variables; its own alignment is at most this.
  program.dynamic_shared_offset = align_up(program.shared_bytes, 1024);
  for (std::uint32_t function : order) decoder.decode_function(function);
  decoder.finish();
  return program;
}

void Decoder::place_module_variables(const std::vector<std::uint32_t>& functions) {
  std::vector<std::uint32_t> used;
  place_module_shared(module_, functions, used);
  PtxInstruction at_head{.opcode = "shared variable"};
  ptx_ = &at_head;
  for (std::uint32_t index : used) {
    const PtxVariable& variable = module_.ptx.variables[index];
    if (variable.is_extern && variable.bytes == 0) continue;
    module_shared_[index] = place_shared(variable);
  }
  ptx_ = nullptr;
}

}  // namespace fusec::emulator
