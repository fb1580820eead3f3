// Everything that one launch of the model does, as a value: the host part of out.cu and the manifest are printed from
// it, the emulator and the driver run it. Sizes and offsets are expressions over the model's symbols.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codegen/expr/guard.h"
#include "codegen/expr/kernel_source.h"
#include "ir/graph.h"
#include "ir/symbol_solution.h"
#include "schedule/lowering/cublaslt_call.h"

namespace fusec {

// Where a value lives while the model runs.
struct BufferRef {
  enum class Kind : std::uint8_t {
    kNowhere,
    kInput,      // M_args' pointer of graph.inputs[index]
    kConstant,   // M_args' pointer of graph.constants[index] (without data)
    kEmbedded,   // a __device__ array of out.cu: graph.constants[index] with data
    kOutput,     // M_args' pointer of graph.outputs[index]
    kWorkspace,  // workspace + offset: where LaunchPlan::arena[index] lies
    kPrepared,   // prepared + offset: where LaunchPlan::prepared_values[index] lies
  };
  Kind kind = Kind::kNowhere;
  std::uint32_t index = 0;
  IndexExpr offset = 0;  // bytes
};

struct Argument {
  enum class Kind : std::uint8_t { kBuffer, kSize, kTensorMap };
  Kind kind = Kind::kBuffer;
  BufferRef buffer;  // kBuffer, kTensorMap
  IndexExpr size;
  int bits = 32;         // kSize
  TensorMapBoxes boxes;  // kTensorMap
};

struct LaunchStep {
  enum class Kind : std::uint8_t {
    kKernel,
    kCopy,        // arguments[0] <- arguments[1], `bytes`
    kExternal,    // a custom op's launcher: arguments are its inputs, then its outputs
    kCollective,  // an NCCL call
    kMatrixCall,  // a call of cuBLASLt: arguments are what it reads, what it writes, its workspace
  };
  // Another form of the kernel, for values of symbols that satisfy a guard; it reads and writes the same.
  struct Specialization {
    Guard guard;
    std::uint32_t kernel = 0;  // kNone: nothing is launched
    std::vector<Argument> arguments;
    std::array<IndexExpr, 3> grid{1, 1, 1};
    IndexExpr dynamic_shared = 0;
  };
  Kind kind = Kind::kKernel;
  std::uint32_t kernel = 0;  // kKernel: index into LaunchPlan::kernels
  std::vector<Argument> arguments;
  std::array<IndexExpr, 3> grid{1, 1, 1};
  IndexExpr dynamic_shared = 0;
  std::vector<Specialization> special = {};              // kKernel: the first whose guard holds is launched instead
  IndexExpr bytes = 0;                                   // kCopy; kMatrixCall: of the workspace
  NodeId node = kNone;                                   // kExternal, kCollective
  std::shared_ptr<const CublasLtCall> matrix = nullptr;  // kMatrixCall
  std::uint32_t group = 0;                               // of the plan; kNone: a copy at the end, of none
  std::vector<ValueId> reads, writes;                    // values behind the buffer arguments, for messages and checks
};

// A value, or scratch memory that the kernels of a group share, in the workspace (or prepared). The steps during which
// it is alive count both ends. What others have in the same place is alive before or after, but for a value whose first
// step takes over, element by element, the place of another one in its last.
struct ArenaValue {
  ValueId value = kNone;  // kNone: scratch memory
  IndexExpr offset = 0, bytes = 0;
  std::uint32_t in_place_of = kNone;  // of the same arena
  // Of LaunchPlan::steps; of prepare_steps: their number, where kept for good.
  std::uint32_t first_step = 0, last_step = 0;
};

struct LaunchPlan {
  std::string identifier;                 // M
  std::vector<KernelSource> kernels;      // distinct; final names
  std::vector<LaunchStep> steps;          // of M_launch
  std::vector<LaunchStep> prepare_steps;  // of M_prepare
  std::vector<ValueId> arguments;         // M_args: inputs, then constants without data
  std::vector<ValueId> results;           // M_args: outputs, each value once
  std::vector<ValueId> embedded;          // constants with data that some kernel reads
  std::vector<SymbolStep> solutions;
  std::vector<LaunchCheck> checks;  // beyond extents and bounds
  std::vector<ArenaValue> arena, prepared_values;
  IndexExpr workspace_bytes = 0;
  IndexExpr prepared_bytes = 0;
  std::int64_t most_shared_bytes = 0;  // that a block may have on the target
  IndexExpr live_bytes = 0;            // lower bound of the arena: the largest live set, at hints
  std::vector<std::string> numerics;   // requested_numerics, for those who read the file
  std::vector<std::string> warnings;   // what was asked for and counts for nothing
};

}  // namespace fusec
