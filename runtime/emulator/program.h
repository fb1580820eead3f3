// A kernel decoded for execution: operands are offsets into a warp's register file, each instruction has a handler.
//
// A register is 32 consecutive lanes, each as wide as the register's type; a predicate is one 32-bit mask. Constants
// have the same layout, so handlers read both alike.
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

// A byte offset into the register file, or, with kConstantBit set, into the program's constants.
using Slot = std::uint32_t;
inline constexpr Slot kConstantBit = 0x80000000u;
inline constexpr Slot kNoSlot = 0xffffffffu;

inline constexpr std::uint32_t kNoReconvergence = 0xffffffffu;  // the paths do not meet before they exit
inline constexpr std::uint32_t kAtReturn = 0xfffffffeu;         // the paths meet after the return from the function

struct Warp;
struct Instruction;
using Handler = void (*)(Warp& warp, const Instruction& instruction, std::uint32_t lanes);

enum class Control : std::uint8_t {
  kStraight,       // handler, then the next instruction
  kBranch,         // to `target`
  kBranchIndexed,  // a: index, list: targets
  kCall,           // to `target`; d: slot of the lanes' return addresses
  kReturn,         // a: return addresses
  kExit,
  kWarpSync,  // like kStraight, after all lanes of the member mask in `members` have arrived
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

struct Operand {  // element of a list: one register of a vector operand
  Slot slot = kNoSlot;
  std::uint8_t width = 0;  // bytes per lane
};

struct Instruction {
  Handler handler = nullptr;
  Slot d = kNoSlot, a = kNoSlot, b = kNoSlot, c = kNoSlot, e = kNoSlot;
  Slot guard = kNoSlot;
  Slot members = kNoSlot;
  std::int64_t immediate = 0;  // meaning depends on the handler: an address offset, a table, a limit
  std::uint32_t target = 0;
  std::uint32_t reconvergence = kNoReconvergence;
  std::uint32_t list = 0;  // index of the first of `count` operands in Program::lists
  std::uint16_t count = 0;
  std::uint16_t bytes = 0;  // size of one lane's memory access
  std::uint16_t mode = 0;   // meaning depends on the handler
  std::uint8_t d_width = 0, a_width = 0, b_width = 0, c_width = 0;
  bool guard_negated = false;
  bool aligned = true;  // barriers: all threads of a warp must execute it together
  bool flush = false, saturate = false, strong = false, option = false;
  bool releases = false, acquires = false;  // memory access with a fence before it, after it
  bool beyond_block = false;                // that fence's scope is wider than the block
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

// A variable of shared, local or constant memory with its offset.
struct Placed {
  std::string name;
  std::uint64_t offset = 0, bytes = 0;
};

// The registers that an instruction reads and writes, for tracking undefined values (undefined_values.h).
struct DataFlow {
  enum class Kind : std::uint8_t {
    kCompute,  // a lane's results depend on all its operands
    kAnd,      // of reads 0 and 1
    kOr,
    kCompareAnd,  // setp: (compare reads 0 and 1) and predicate 2
    kCompareOr,
    kSelect,  // read 0 or 1, by predicate 2
    kMix,     // a lane's results depend on operands of other lanes
    kLoad,    // the reads are an address
    kStore,   // stores the list's values
    kUse,     // an undefined operand is a finding
  };
  struct Operand {
    Slot slot = kNoSlot;
    std::uint8_t width = 0;  // bytes; 0: a predicate
    bool negated = false;
  };
  Kind kind = Kind::kCompute;
  bool product = false;  // wgmma; wgmma_in_flight.h tracks its registers
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

  std::vector<Placed> parameters;  // offsets in parameter space
  std::uint64_t parameter_bytes = 0;
  std::vector<Placed> shared;  // static variables, with guard gaps between them
  std::uint64_t shared_bytes = 0;
  std::uint64_t declared_shared_bytes = 0;  // without the gaps
  std::uint64_t dynamic_shared_offset = 0;
  std::vector<Placed> local;
  std::uint64_t local_bytes = 0;
  bool has_bulk_stores = false;
  bool has_register_operands = false;  // wgmma with A in registers
  std::array<std::uint32_t, 3> required_threads{}, max_threads{}, required_cluster{};

  // The source of an instruction, for reports.
  struct Origin {
    int line = 0, source_file = 0, source_line = 0;
    std::string opcode;
  };
  std::vector<Origin> origins;
};

}  // namespace fusec::emulator
