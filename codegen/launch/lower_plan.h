// A fusion plan as an ordered list of steps: kernels with the values behind their parameters, copies and calls. Memory
// is not decided here. A step names values, `storage_of` says which values share a buffer, and the launch plan places
// the buffers.
//
//   group {linear, gelu}  ->  kernel(x, w; h)
//   group {reshape}       ->  no step: storage_of[reshaped] is the operand's buffer
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "codegen/expr/guard.h"
#include "codegen/expr/kernel_source.h"
#include "codegen/launch/emit_options.h"
#include "ir/graph.h"
#include "schedule/lowering/cublaslt_call.h"
#include "schedule/target/target.h"

namespace fusec {

class FormMemory;
struct LoweringMemory;
struct FusionPlan;

struct LoweredStep {
  enum class Kind : std::uint8_t {
    kKernel,      // kernels[kernel] with `parameters`
    kCopy,        // copies the bytes of reads[0] to writes[0] (same element count and dtype)
    kExternal,    // a custom op's launcher: reads are its tensor operands in order, writes its results
    kCollective,  // all_reduce, all_gather, reduce_scatter: reads[0] -> writes[0]
    kMatrixCall,  // a cuBLASLt product: `matrix`; its only parameter is the library's workspace
  };
  Kind kind = Kind::kKernel;
  // Another form of the kernel, for symbols that satisfy a guard.
  struct Specialization {
    Guard guard;
    std::uint32_t kernel = 0;  // kNone: the form's earlier kernels have done all the work
    std::vector<KernelParameter> parameters;
  };
  std::uint32_t kernel = 0;                  // kKernel: index into LoweredPlan::kernels
  std::vector<KernelParameter> parameters;   // kKernel: the kernel's parameters with this step's values
  std::vector<Specialization> special = {};  // kKernel: the first with a guard that holds is launched instead
  NodeId node = kNone;                       // kExternal, kCollective
  std::shared_ptr<const CublasLtCall> matrix = nullptr;  // kMatrixCall
  std::vector<ValueId> reads, writes;  // the graph's values (not resolved through storage_of), each once
  std::vector<NodeId> nodes;           // nodes that this step computes, for comments and reports
};

struct LoweredGroup {
  bool prepared = false;  // copied from the plan's group
  std::vector<LoweredStep> steps;
};

struct LoweredPlan {
  // Each distinct kernel once; the steps of repeated layers share it. `name` is a proposal ("silu_mul"), not yet
  // unique.
  std::vector<KernelSource> kernels;
  std::vector<LoweredGroup> groups;  // in the order of the plan's groups
  // For each value the root, the value that owns its buffer: itself, or the value that it is a view of. Only roots of
  // values that a step reads or writes, or that are outputs of the model, need a buffer. A buffer holds at most one
  // output of the model, and an input's or constant's buffer holds none; where the graph aliases them, a kCopy step
  // makes the output its own root. A tuple's value has no buffer.
  std::vector<ValueId> storage_of;
  // Bytes of each scratch memory, indexed by `scratch` of kWorkspace parameters. Steps of one group with the same index
  // share the memory. It lives from the first of them to the last.
  std::vector<IndexExpr> scratch_bytes;
  std::int64_t most_shared_bytes = 0;  // shared memory limit per block on the target, in bytes
  std::vector<std::string> numerics;   // requested_numerics
  std::vector<std::string> warnings;   // options that had no effect
};

// `forms` holds the kernel analyses made while the plan was chosen, `memory` this graph's lowered groups.
LoweredPlan lower_plan(const Graph& graph, const FusionPlan& plan, const Target& target, const EmitOptions& options,
                       FormMemory* forms = nullptr, LoweringMemory* memory = nullptr);

}  // namespace fusec
