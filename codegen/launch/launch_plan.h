// Everything that one launch of the model does, as a value. The host part of out.cu and the manifest are printed from
// it; the emulator and the driver run it. Sizes and offsets are expressions over the model's symbols.
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

// Where a value is stored while the model runs.
struct BufferRef {
  enum class Kind : std::uint8_t {
    kNowhere,
    kInput,      // M_args' pointer of graph.inputs[index]
    kConstant,   // M_args' pointer of graph.constants[index] (a constant without data)
    kEmbedded,   // a __device__ array of out.cu: graph.constants[index] (a constant with data)
    kOutput,     // M_args' pointer of graph.outputs[index]
    kWorkspace,  // workspace + offset, the place of LaunchPlan::arena[index]
    kPrepared,   // prepared + offset, the place of LaunchPlan::prepared_values[index]
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
    kMatrixCall,  // a cuBLASLt call: arguments are its operands, its results, its workspace
  };
  // Another form of the kernel, for symbols that satisfy a guard. It reads and writes the same values.
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
  std::vector<Specialization> special = {};  // kKernel: the first with a guard that holds is launched instead
  IndexExpr bytes = 0;                       // bytes to copy (kCopy) or of workspace (kMatrixCall)
  NodeId node = kNone;                       // kExternal, kCollective
  std::shared_ptr<const CublasLtCall> matrix = nullptr;  // kMatrixCall
  std::uint32_t group = 0;                               // group of the plan; kNone: a final copy
  std::vector<ValueId> reads, writes;                    // values behind the buffer arguments, for messages and checks
};

// A value in the workspace (or in the prepared memory), or scratch memory shared by the kernels of a group. Its
// lifetime includes both end steps. Values in the same place have disjoint lifetimes, except that a value may take over
// another one's place element by element, in the last step of the other.
struct ArenaValue {
  ValueId value = kNone;  // kNone: scratch memory
  IndexExpr offset = 0, bytes = 0;
  std::uint32_t in_place_of = kNone;  // index of the overwritten value in the same arena
  // Indices into LaunchPlan::steps, or into prepare_steps; a last step equal to their number means kept for good.
  std::uint32_t first_step = 0, last_step = 0;
};

struct LaunchPlan {
  std::string identifier;                 // the model's identifier M
  std::vector<KernelSource> kernels;      // distinct, with final names
  std::vector<LaunchStep> steps;          // of M_launch
  std::vector<LaunchStep> prepare_steps;  // of M_prepare
  std::vector<ValueId> arguments;         // fields of M_args: inputs, then constants without data
  std::vector<ValueId> results;           // fields of M_args: outputs, each value once
  std::vector<ValueId> embedded;          // constants with data that some kernel reads
  std::vector<SymbolStep> solutions;
  std::vector<LaunchCheck> checks;  // other than extents and bounds
  std::vector<ArenaValue> arena, prepared_values;
  IndexExpr workspace_bytes = 0;
  IndexExpr prepared_bytes = 0;
  std::int64_t most_shared_bytes = 0;  // shared memory limit per block on the target, in bytes
  IndexExpr live_bytes = 0;            // lower bound of the arena: bytes alive at the busiest step, at the hints
  std::vector<std::string> numerics;   // requested_numerics, for readers of the file
  std::vector<std::string> warnings;   // options that had no effect
};

}  // namespace fusec
