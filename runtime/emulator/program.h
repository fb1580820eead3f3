// A kernel decoded for execution: operands are places in a warp's register file, each instruction has its handler.
//
// A register is 32 lanes side by side, each as wide as the register's type; a predicate is one 32-bit mask. Constants
// are kept the same way, so that a handler need not know which of the two it reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/emulator/emulator.h"
#include "runtime/emulator/numerics.h"
#include "runtime/emulator/ptx_module.h"

namespace fusec::emulator {

inline constexpr int kLanes = 32;
inline constexpr std::uint32_t kAllLanes = 0xffffffffu;

// A byte offset into the register file, or with kConstantBit set into the program's constants.
using Slot = std::uint32_t;
inline constexpr Slot kConstantBit = 0x80000000u;
inline constexpr Slot kNoSlot = 0xffffffffu;

inline constexpr std::uint32_t kNoReconvergence = 0xffffffffu;  // the paths do not meet again before they exit
inline constexpr std::uint32_t kAtReturn = 0xfffffffeu;         // they meet where the function returns to

struct Warp;
struct Instruction;
using Handler = void (*)(Warp& warp, const Instruction& instruction, std::uint32_t lanes);

enum class Control : std::uint8_t {
  kStraight,       // handler, then the next instruction
  kBranch,         // target
  kBranchIndexed,  // a: index, list: targets
  kCall,           // target; d: where the lanes keep their return addresses
  kReturn,         // a: return addresses
  kExit,
  kWarpSync,  // straight, once the lanes of the member mask in `members` have come
  kBarrier,   // a: number, b: count; mode: BarrierMode
  kTrap,
};

enum class BarrierMode : std::uint8_t {
  kSync,
  kArrive,
  kReducePopc,
  kReduceAnd,
  kReduceOr,
  kClusterArrive,
  kClusterWait
};

struct Operand {  // of a list: a vector's element
  Slot slot = kNoSlot;
  std::uint8_t width = 0;  // bytes of a lane
};

struct Instruction {
  Handler handler = nullptr;
  Slot d = kNoSlot, a = kNoSlot, b = kNoSlot, c = kNoSlot, e = kNoSlot;
  Slot guard = kNoSlot;
  Slot members = kNoSlot;
  std::int64_t immediate = 0;  // an address's offset, a table, a limit: as the handler takes it
  std::uint32_t target = 0;
  std::uint32_t reconvergence = kNoReconvergence;
  std::uint32_t list = 0;  // first of `count` operands in Program::lists
  std::uint16_t count = 0;
  std::uint16_t bytes = 0;  // of one lane's memory access
  std::uint16_t mode = 0;   // the handler's own
  std::uint8_t d_width = 0, a_width = 0, b_width = 0, c_width = 0;
  bool guard_negated = false;
  bool aligned = true;  // barriers: all threads of a warp must execute it together
  bool flush = false, saturate = false, strong = false, option = false;
  bool releases = false, acquires = false;  // memory: a fence before, behind the access
  bool beyond_block = false;                // the scope of such a fence
  Control control = Control::kStraight;
  InstructionClass kind = InstructionClass::kOther;
  Space space = Space::kGeneric;
  Type type = Type::kNone, from = Type::kNone;
  Rounding rounding = Rounding::kNearestEven;
  std::uint8_t reduction = 0;  // ReduceOp of a reducing bulk copy
};

// Special registers that a warp fills in before its first instruction.
enum class Special : std::uint8_t {
  kTidX,
  kTidY,
  kTidZ,
  kNtidX,
  kNtidY,
  kNtidZ,
  kCtaidX,
  kCtaidY,
  kCtaidZ,
  kNctaidX,
  kNctaidY,
  kNctaidZ,
  kLaneId,
  kWarpId,
  kNwarpId,
  kSmId,
  kNsmId,
  kGridId,
  kLanemaskEq,
  kLanemaskLe,
  kLanemaskLt,
  kLanemaskGe,
  kLanemaskGt,
  kClusterIdX,
  kClusterIdY,
  kClusterIdZ,
  kNclusterIdX,
  kNclusterIdY,
  kNclusterIdZ,
  kClusterCtaidX,
  kClusterCtaidY,
  kClusterCtaidZ,
  kClusterNctaidX,
  kClusterNctaidY,
  kClusterNctaidZ,
  kClusterCtarank,
  kClusterNctarank,
  kTotalShared,
  kDynamicShared,
  kZero,
};

// A variable of shared, local or constant memory, placed.
struct Placed {
  std::string name;
  std::uint64_t offset = 0, bytes = 0;
};

// What an instruction reads and writes, for values that are undefined (see undefined_values.h).
struct DataFlow {
  enum class Kind : std::uint8_t {
    kCompute,  // a lane's results depend on all its operands
    kAnd,      // of reads 0 and 1
    kOr,
    kCompareAnd,  // setp: reads 0 and 1 compared, and then predicate 2
    kCompareOr,
    kSelect,  // read 0 or 1, by predicate 2
    kMix,     // a lane's results depend on the operands of others
    kLoad,    // the reads are an address
    kStore,   // of the list's values
    kUse,     // the operands matter
  };
  struct Operand {
    Slot slot = kNoSlot;
    std::uint8_t width = 0;  // bytes; 0: a predicate
    bool negated = false;
  };
  Kind kind = Kind::kCompute;
  bool product = false;  // wgmma, whose registers are watched apart (products_in_flight.h)
  Slot guard = kNoSlot;
  std::vector<Operand> reads;
  std::vector<Slot> writes;
};

struct Program {
  std::string kernel;
  std::vector<Instruction> code;
  std::vector<DataFlow> flows;  // by pc
  std::vector<Operand> lists;
  std::vector<std::byte> constants;
  std::uint32_t register_bytes = 0;
  std::vector<std::pair<Special, Slot>> specials;  // 32-bit each

  std::vector<Placed> parameters;  // in parameter space, from 0
  std::uint64_t parameter_bytes = 0;
  std::vector<Placed> shared;  // static; with gaps that no access may touch
  std::uint64_t shared_bytes = 0;
  std::uint64_t declared_shared_bytes = 0;  // without the gaps
  std::uint64_t dynamic_shared_offset = 0;
  std::vector<Placed> local;
  std::uint64_t local_bytes = 0;
  bool has_bulk_stores = false;
  bool has_register_factors = false;  // wgmma with A in registers
  std::array<std::uint32_t, 3> required_threads{}, max_threads{}, required_cluster{};

  // By pc, for reports.
  struct Origin {
    int line = 0, source_file = 0, source_line = 0;
    std::string opcode;
  };
  std::vector<Origin> origins;
};

}  // namespace fusec::emulator
