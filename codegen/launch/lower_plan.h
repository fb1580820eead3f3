// A fusion plan as steps to run, in order: kernels with the values behind their parameters, copies, calls. Memory is
// not decided here: a step names values, `storage_of` says which values share one buffer, and the launch plan places
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
struct FusionPlan;

struct LoweredStep {
  enum class Kind : std::uint8_t {
    kKernel,      // kernels[kernel] with `parameters`
    kCopy,        // the bytes of writes[0] become those of reads[0] (same element count and dtype)
    kExternal,    // a custom op's launcher: reads are its tensor operands in order, writes its results
    kCollective,  // all_reduce, all_gather, reduce_scatter: reads[0] -> writes[0]
    kMatrixCall,  // a product that cuBLASLt computes: `matrix`; its one parameter is the library's workspace
  };
  Kind kind = Kind::kKernel;
  // Another form of the same kernel, for values of symbols that satisfy a guard.
  struct Specialization {
    Guard guard;
    std::uint32_t kernel = 0;  // kNone: the form's kernels before have done it all
    std::vector<KernelParameter> parameters;
  };
  std::uint32_t kernel = 0;                              // kKernel: index into LoweredPlan::kernels
  std::vector<KernelParameter> parameters;               // kKernel: those of the kernel, with this step's values
  std::vector<Specialization> special = {};              // kKernel: the first whose guard holds is launched instead
  NodeId node = kNone;                                   // kExternal, kCollective
  std::shared_ptr<const CublasLtCall> matrix = nullptr;  // kMatrixCall
  std::vector<ValueId> reads, writes;  // values as the graph has them (not resolved through storage_of), each once
  std::vector<NodeId> nodes;           // what this step computes, for comments and reports
};

struct LoweredGroup {
  bool prepared = false;  // as the plan's group
  std::vector<LoweredStep> steps;
};

struct LoweredPlan {
  // Each distinct kernel once (steps of repeated layers share one); `name` is a proposal ("silu_mul"), not yet unique.
  std::vector<KernelSource> kernels;
  std::vector<LoweredGroup> groups;  // as the plan's groups, in its order
  // For every value the value in whose buffer it lives: itself, or what it is a view of. Only values that some step
  // reads or writes, or that are outputs of the model, need a buffer: those are the roots named by `storage_of` of
  // them. At most one output of the model lives in a buffer, and none in an input's or a constant's: where the graph
  // would have it so, a kCopy step is there and the output is its own root. A tuple's value has no buffer.
  std::vector<ValueId> storage_of;
  // Scratch memory: a kWorkspace parameter's `scratch` numbers these; steps of one group that name the same number
  // share the memory, which lives from the first to the last of them.
  std::vector<IndexExpr> scratch_bytes;
  std::int64_t most_shared_bytes = 0;  // that a block may have on the target
  std::vector<std::string> numerics;   // requested_numerics
  std::vector<std::string> warnings;   // what was asked for and counts for nothing
};

// `forms`: what was found out of kernels when the plan was made.
LoweredPlan lower_plan(const Graph& graph, const FusionPlan& plan, const Target& target, const EmitOptions& options,
                       FormMemory* forms = nullptr);

}  // namespace fusec
