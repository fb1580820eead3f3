// A parsed PTX file with resolved names, before decoding (decode.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/emulator/ptx_types.h"

namespace fusec::emulator {

struct PtxVariable {
  std::string name;
  Space space = Space::kGlobal;
  Type type = Type::kNone;
  int alignment = 1;
  std::uint64_t bytes = 0;  // 0 for an unsized extern array
  bool is_extern = false;
  std::vector<std::byte> initial;  // empty: not initialized
  struct Relocation {              // a pointer inside `initial` to another variable
    std::uint64_t at = 0;
    std::string variable;
    std::int64_t offset = 0;
    bool generic = false;
  };
  std::vector<Relocation> relocations;
  int line = 0;
};

struct PtxOperand {
  enum class Kind : std::uint8_t {
    kRegister,  // index
    kSpecial,   // name: "tid.x"
    kInteger,   // value
    kFloat,     // value holds the bits of a float64
    kFloat32,   // value holds the bits of a float32
    kVariable,  // index into the variables of the function, or of the module if `global`, plus offset
    kLabel,     // index of the instruction
    kName,      // a function or an unknown name
    kAddress,   // parts[0] is the base, plus offset; further parts are the coordinates of a tensor access
    kVector,    // parts
    kPair,      // parts[0] | parts[1]
    kSink,      // _
  };
  Kind kind = Kind::kSink;
  bool negated = false;  // !p
  bool global = false;   // kVariable: a variable of the module
  std::uint32_t index = 0;
  std::uint64_t value = 0;
  std::int64_t offset = 0;
  std::string name;
  std::vector<PtxOperand> parts;
};

struct PtxInstruction {
  std::string opcode;  // as written: "ld.global.v4.f32"
  std::string base;    // "ld"
  std::vector<std::string> suffixes;
  bool guarded = false, guard_negated = false;
  std::uint32_t guard = 0;  // index of the predicate register
  std::vector<PtxOperand> operands;
  int line = 0;
  int source_file = 0, source_line = 0;  // of the .loc before it; 0: none
};

struct PtxRegister {
  Type type = Type::kNone;
};

struct PtxFunction {
  std::string name;
  bool is_entry = false;
  bool has_body = false;
  std::vector<PtxRegister> registers;
  std::vector<PtxVariable> variables;     // parameters first, then those of the body
  std::vector<std::uint32_t> parameters;  // indices of variables
  std::vector<std::uint32_t> results;     // indices of variables: the results of a .func
  std::vector<PtxInstruction> instructions;
  std::array<std::uint32_t, 3> required_threads{};  // .reqntid
  std::array<std::uint32_t, 3> max_threads{};       // .maxntid
  std::array<std::uint32_t, 3> required_cluster{};  // .reqnctapercluster
  int line = 0;
};

struct PtxModule {
  std::string file;  // name for errors
  std::string version, target;
  std::vector<PtxVariable> variables;
  std::vector<PtxFunction> functions;
  std::vector<std::pair<int, std::string>> source_files;  // number and path of each .file directive

  const PtxFunction* find_function(std::string_view name) const;
};

// Throws Error (kInput) with `file:line` for text that is not PTX.
PtxModule parse_ptx(std::string_view text, const std::string& file);

}  // namespace fusec::emulator
