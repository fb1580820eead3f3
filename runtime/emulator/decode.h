// Decodes PTX instructions to a Program: names become slots, opcodes become handlers. Each decode_* file handles one
// family of instructions. An unknown opcode or an unused suffix is an error that names the instruction.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/emulator/module_data.h"
#include "runtime/emulator/program.h"
#include "runtime/emulator/ptx_target.h"

namespace fusec::emulator {

// Throws Error (kInput).
Program decode_kernel(const ModuleData& module, std::string_view kernel);

// The handler of instructions without an effect in an emulator.
inline void nothing(Warp&, const Instruction&, std::uint32_t) {}

inline std::uint64_t align_up(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

// The suffixes of an opcode that are not decoded yet, in order.
class Suffixes {
 public:
  void reset(const std::vector<std::string>& suffixes) { left_.assign(suffixes.begin(), suffixes.end()); }
  bool take(std::string_view word);
  bool has(std::string_view word) const;
  // Takes the first suffix that is a type; kNone if there is none.
  Type take_type();
  // take_rounding: .rn .rz .rm .rp .rna; take_integral_rounding: .rni .rzi .rmi .rpi.
  std::optional<Rounding> take_rounding();
  std::optional<Rounding> take_integral_rounding();
  bool empty() const { return left_.empty(); }
  const std::vector<std::string_view>& left() const { return left_; }
  void clear() { left_.clear(); }

 private:
  std::vector<std::string_view> left_;
};

// Decodes one instruction at a time. The decode_* families use it to resolve operands and to fill in `out`.
class Decoder {
 public:
  Decoder(const ModuleData& module, Program& program, std::size_t functions);

  // The instruction being decoded.
  const PtxInstruction& ptx() const { return *ptx_; }
  std::string_view base() const { return ptx_->base; }
  Suffixes suffixes;
  Instruction out;  // filled in by the family

  [[noreturn]] void fail(std::string what, std::string found = {}, std::string expected = {}) const;
  [[noreturn]] void unknown() const { fail("unknown instruction", ptx_->opcode); }

  std::size_t operands() const { return ptx_->operands.size(); }
  const PtxOperand& operand(std::size_t i) const;
  void expect_operands(std::size_t least, std::size_t most) const;

  // Slots of operands. `width` and `least` are bytes.
  Slot destination(const PtxOperand& operand, int width);
  Slot destination(const PtxOperand& operand, int least,
                   std::uint8_t& width);  // any register of at least `least` bytes
  Slot source(const PtxOperand& operand, Type type);
  Slot source_any(const PtxOperand& operand, Type type, std::uint8_t& width);  // a register may be wider than the type
  Slot predicate_destination(const PtxOperand& operand);
  Slot predicate_source(const PtxOperand& operand);
  int register_width(const PtxOperand& operand) const;  // bytes; 0: a predicate, -1: no register
  bool is_predicate(const PtxOperand& operand) const { return register_width(operand) == 0; }
  Slot scratch(int width);
  Slot constant(std::uint64_t value, int width);
  void begin_list();
  void add_to_list(Slot slot, int width);

  // An address operand: sets out.a, out.a_width and out.immediate. Returns the actual space of a named variable.
  Space address(const PtxOperand& operand, Space space);

  // Inserts `instruction` before the one being decoded, with the same source line.
  void emit(const Instruction& instruction);
  void note_bulk_stores() { program_.has_bulk_stores = true; }
  void note_register_operands() { program_.has_register_operands = true; }

  // ---- for decode.cpp
  void place_module_variables(const std::vector<std::uint32_t>& functions);
  void place_function(std::uint32_t function);
  void decode_function(std::uint32_t function);
  void finish();
  std::vector<std::uint32_t> calls_of(std::uint32_t function) const;

 private:
  struct Frame {
    std::vector<Slot> registers;
    std::vector<std::uint64_t> variables;  // offsets in their spaces
    Slot return_address = kNoSlot;
    std::uint32_t begin = 0, end = 0;
    bool placed = false;
  };
  struct Fixup {
    std::uint32_t pc;
    std::uint32_t function;  // callee
  };

  Slot allocate(int lane_bytes);
  void place_variables(std::uint32_t function);
  std::uint64_t place_shared(const PtxVariable& variable);
  std::uint64_t place_local(const PtxVariable& variable);
  std::uint64_t variable_address(const PtxOperand& operand, Space& space);
  std::uint64_t immediate(const PtxOperand& operand, Type type) const;
  Slot source_slot(const PtxOperand& operand, Type type, std::uint8_t& width);
  Slot special(const PtxOperand& operand, int width);
  void decode_instruction(const PtxInstruction& instruction);
  void decode_call();
  DataFlow::Kind flow_kind() const;
  void copy_parameter(std::uint64_t from, std::uint64_t to, std::uint64_t bytes);

  const ModuleData& module_;
  PtxTarget target_;
  Program& program_;
  std::vector<Frame> frames_;  // by function of the module
  std::uint32_t function_ = 0;
  const PtxInstruction* ptx_ = nullptr;
  DataFlow flow_;  // of the instruction being decoded
  std::map<std::pair<std::uint64_t, int>, Slot> constants_;
  std::map<Special, Slot> specials_;
  std::map<std::uint32_t, std::uint64_t> module_shared_;  // offsets of module-level .shared variables, by index
  std::vector<Fixup> calls_;
};

// The families. Each returns false if the opcode is not one of its own.
bool decode_integer(Decoder& decoder);
bool decode_float(Decoder& decoder);
bool decode_float_order(Decoder& decoder);
bool decode_half(Decoder& decoder);
bool decode_convert(Decoder& decoder);
bool decode_logic(Decoder& decoder);
bool decode_compare(Decoder& decoder);
bool decode_move(Decoder& decoder);
bool decode_memory(Decoder& decoder);
bool decode_atomic(Decoder& decoder);
bool decode_async(Decoder& decoder);
bool decode_warp(Decoder& decoder);
bool decode_control(Decoder& decoder);
bool decode_matrix(Decoder& decoder);
bool decode_mbarrier(Decoder& decoder);
bool decode_bulk(Decoder& decoder);
bool decode_wgmma(Decoder& decoder);
bool decode_wmma(Decoder& decoder);
bool decode_cluster(Decoder& decoder);
bool decode_store_async(Decoder& decoder);
bool decode_tensor_map(Decoder& decoder);

// Marks weak loads that give a compare-and-swap its first guess as relaxed: loads of the value that it compares with,
// and loads from its address. The swap checks the loaded value, so such a load is no race. CUDA implements atomics on
// types without hardware support this way.
void relax_first_guesses(Program& program);

// Sets the reconvergence pc of every branch in code[begin, end): its immediate post-dominator, where its paths meet.
void find_reconvergence(std::vector<Instruction>& code, const std::vector<Operand>& lists, std::uint32_t begin,
                        std::uint32_t end, bool is_entry);

}  // namespace fusec::emulator
