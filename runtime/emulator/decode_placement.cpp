// Assigns offsets to a kernel's variables: shared and local memory with guard gaps between them, parameters contiguous.
#include <algorithm>

#include "runtime/emulator/decode.h"
#include "runtime/emulator/memory.h"

namespace fusec::emulator {
namespace {

constexpr std::uint64_t kGap = 128;                 // bytes of a guard gap; 32 banks of 4 bytes, so banks do not change
constexpr std::uint64_t kMaxLocalBytes = 1u << 19;  // per thread: the ISA's limit, 512 KiB

// The module-level shared variables that the functions use.
std::vector<std::uint32_t> used_module_shared(const ModuleData& module, const std::vector<std::uint32_t>& functions) {
  std::vector<std::uint32_t> used;
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
  return used;
}

}  // namespace

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

void Decoder::place_module_variables(const std::vector<std::uint32_t>& functions) {
  PtxInstruction at_head{.opcode = "shared variable"};
  ptx_ = &at_head;
  for (std::uint32_t index : used_module_shared(module_, functions)) {
    const PtxVariable& variable = module_.ptx.variables[index];
    if (variable.is_extern && variable.bytes == 0) continue;
    module_shared_[index] = place_shared(variable);
  }
  ptx_ = nullptr;
}

}  // namespace fusec::emulator
