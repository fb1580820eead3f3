#include "runtime/emulator/decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "ir/error.h"
#include "runtime/emulator/lanes.h"
#include "runtime/emulator/ptx_lexer.h"

namespace fusec::emulator {
namespace {

void copy_local(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  const std::uint64_t stride = warp.program->local_bytes;
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    const std::uint64_t from = lane * stride + static_cast<std::uint64_t>(in.immediate);
    const std::uint64_t to = lane * stride + in.target;
    if (std::memcmp(&warp.local[to], &warp.local[from], in.reconvergence) != 0) warp.block->changed = true;
    std::memmove(&warp.local[to], &warp.local[from], in.reconvergence);
    std::memmove(&warp.local_written[to], &warp.local_written[from], in.reconvergence);
  }
}

// Handlers of assertions and printing, functions that device code calls without a PTX definition.
void failed_assertion(Warp& warp, const Instruction&, std::uint32_t lanes) {
  report(warp, std::countr_zero(lanes), FindingKind::kTrap, "a device assertion failed");
}
void ignore(Warp&, const Instruction&, std::uint32_t) {}

}  // namespace

Decoder::Decoder(const ModuleData& module, Program& program, std::size_t functions)
    : module_(module),
      target_(parse_ptx_target(module.ptx.target, module.ptx.version)),
      program_(program),
      frames_(functions) {}

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
  // Reaching the end means return.
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
  flow_ = DataFlow{};
  suffixes.reset(instruction.suffixes);
  if (instruction.guarded) {
    PtxOperand guard{.kind = PtxOperand::Kind::kRegister, .index = instruction.guard};
    out.guard = predicate_source(guard);
    flow_.guard = flow_.reads.back().slot;
    flow_.reads.clear();
    out.guard_negated = instruction.guard_negated;
  }
  if (const std::string_view needed = needed_target(target_, instruction.opcode); !needed.empty()) {
    fail(fmt::format("{} does not exist for .target {}", instruction.opcode, module_.ptx.target), module_.ptx.target,
         ".target " + std::string(needed));
  }
  if (instruction.base == "call") return decode_call();
  const bool known = decode_move(*this) || decode_integer(*this) || decode_float(*this) || decode_float_order(*this) ||
                     decode_half(*this) || decode_memory(*this) || decode_logic(*this) || decode_compare(*this) ||
                     decode_convert(*this) || decode_control(*this) || decode_warp(*this) ||
                     decode_store_async(*this) || decode_tensor_map(*this) || decode_atomic(*this) ||
                     decode_matrix(*this) || decode_mbarrier(*this) || decode_bulk(*this) || decode_wgmma(*this) ||
                     decode_wmma(*this) || decode_cluster(*this) || decode_async(*this);
  if (!known || !suffixes.empty()) unknown();
  if (out.control == Control::kReturn) {
    const Frame& frame = frames_[function_];
    if (frame.return_address == kNoSlot)
      out.control = Control::kExit;
    else
      out.a = frame.return_address;
  }
  flow_.kind = flow_kind();
  flow_.product = instruction.base == "wgmma";
  emit(out);
  program_.flows.back() = std::move(flow_);
}

// The kind by the opcode. Unknown opcodes count as kUse.
DataFlow::Kind Decoder::flow_kind() const {
  constexpr std::string_view kComputes[] = {
      "abs",  "add", "addc", "bfe",   "bfi",  "bfind", "bmsk", "brev", "clz",   "cnot", "copysign", "cos",  "cvt",
      "cvta", "div", "dp2a", "dp4a",  "ex2",  "fma",   "fns",  "lg2",  "lop3",  "mad",  "mad24",    "madc", "max",
      "min",  "mov", "mul",  "mul24", "neg",  "not",   "popc", "prmt", "rcp",   "rem",  "rsqrt",    "sad",  "set",
      "shf",  "shl", "shr",  "sin",   "slct", "sqrt",  "sub",  "subc", "szext", "tanh", "testp",    "xor",  "isspacep"};
  constexpr std::string_view kMixes[] = {"match", "mma", "movmatrix", "redux", "shfl", "vote"};
  const auto has = [this](std::string_view word) {
    return std::find(ptx_->suffixes.begin(), ptx_->suffixes.end(), word) != ptx_->suffixes.end();
  };
  using Kind = DataFlow::Kind;
  const std::string_view base = ptx_->base;
  const std::size_t reads = flow_.reads.size();
  if (base == "ld" || base == "ldu") return Kind::kLoad;
  if (base == "st" && !has("async")) return Kind::kStore;
  if ((base == "and" || base == "or") && reads == 2) return base == "and" ? Kind::kAnd : Kind::kOr;
  if (base == "selp" && reads == 3) return Kind::kSelect;
  if (base == "setp" && reads == 3 && has("and")) return Kind::kCompareAnd;
  if (base == "setp" && reads == 3 && has("or")) return Kind::kCompareOr;
  if (base == "setp" || base == "selp" || base == "and" || base == "or") return Kind::kCompute;
  if (std::find(std::begin(kMixes), std::end(kMixes), base) != std::end(kMixes)) return Kind::kMix;
  const bool computes = std::find(std::begin(kComputes), std::end(kComputes), base) != std::end(kComputes);
  return computes && !has("cc") ? Kind::kCompute : Kind::kUse;  // the carry flag is not tracked
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

// Decodes call (results), function, (parameters); the lists may be missing.
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

// The functions that `entry` reaches, `entry` first. Throws for recursive calls, since frames are static.
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
  // Dynamic shared memory follows the static variables; its alignment is at most 1024.
  program.dynamic_shared_offset = (program.shared_bytes + 1023) / 1024 * 1024;
  for (std::uint32_t function : order) decoder.decode_function(function);
  decoder.finish();
  relax_first_guesses(program);
  return program;
}

}  // namespace fusec::emulator
