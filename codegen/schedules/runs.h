// Pointwise kernels that only move elements: pads, rolls, pieces side by side. 16 bytes of the results are mostly one
// run of 16 bytes of some tensor, wherever that begins, or of one constant; only where a row begins or a piece ends are
// they made of several. A block copies what it reads of each tensor to shared memory (codegen/schedules/stretches) and
// its threads take runs from there, of two vectors each. That nothing changes within a run its first and its last
// element tell: every comparison, quotient, minimum and maximum is the same for both. What is no run, a warp makes one
// element after the other, all its threads together.
//
//   y[i, j] = x[i, reflected(j - 3)], rows of 118 float16:   |3 2 1 0 1 2 3 4|5 .. 12|13 .. 20| ...
//                                                             made of elements, run,    run
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/kernel.h"
#include "analysis/target.h"
#include "codegen/kernel_source.h"
#include "ir/graph.h"

namespace fusec {

// What tells pieces of a row apart: it changes there, and has one value along each.
struct RunBreaks {
  std::vector<ExprId> conditions;
  std::vector<IndexExpr> quotients;
  std::vector<std::pair<IndexExpr, IndexExpr>> compared;  // whether the first one is less
};

struct RunPlan {
  struct Tensor {
    std::uint32_t source = 0;
    std::vector<ExprId> loads;
    int most = 0;            // vectors of 16 bytes of a block; more are not copied
    std::int64_t start = 0;  // in shared memory, in bytes
  };
  RunBreaks breaks;
  std::vector<Tensor> tensors;
  std::vector<ExprId> constants;
  int width = 1;  // elements of 16 bytes
  int threads = 256;
  int turns = 2;                                                // runs of a thread, a block's threads apart
  std::int64_t ends_start = 0, list_start = 0, made_start = 0;  // in shared memory, in bytes
  double sectors = 0, instructions = 0;                         // for a point, of loads alone; and of all

  std::int64_t runs_of_warp() const { return std::int64_t{32} * turns; }
  std::int64_t ends_bytes() const { return std::int64_t{2} * 4 * (threads / 32); }
  std::int64_t shared_bytes() const { return made_start + std::int64_t{16} * threads * turns; }
};

// Nothing where it computes anything, or where few of the results are runs. `merged` has merged axes.
std::optional<RunPlan> plan_runs(const Kernel& merged, const Graph& graph, const Target& target);

KernelSource emit_runs(const Kernel& merged, const Graph& graph, const Target& target, const RunPlan& plan);

}  // namespace fusec
