// Counts the executed operations, moved bytes and live registers of a kernel's expressions, with symbols at their
// hints. schedule/plan/count_work knows how often a plan executes which of them.
#pragma once

#include <vector>

#include "analysis/kernel/counted_points.h"
#include "ir/graph.h"
#include "schedule/cost/work.h"
#include "schedule/target/target.h"

namespace fusec {

inline constexpr double kAddressRegisters = 24;  // for addresses and loop counters

class WorkCounter : public CountedPoints {
 public:
  explicit WorkCounter(const Kernel& kernel) : CountedPoints(kernel), kernel_(kernel), pool_(kernel.pool) {}

  // Adds the work of `times` evaluations. A reduction counts once per element it reduces.
  void execute(ExprId id, double times, Work& work) const;

  // Adds the work at all points of `space` and of the axes that a node depends on besides.
  void execute_all(const std::vector<ExprId>& nodes, const Axes& space, double times, Work& work) const;

  // Counts bytes read and written. A load reads at most one element per value of its index. Loads of one tensor read
  // the sum of these, but at most the whole tensor.
  void count_bytes(const Graph& graph, Work& work) const;

  // Counts the registers of values that are live at once if nodes run in the order of the pool (constants take none),
  // plus registers for addresses and loop counters.
  void count_registers(Work& work) const;

 private:
  const Kernel& kernel_;
  const ExprPool& pool_;
};

// Adds multiply-adds to the unit that executes them.
void add_multiply_adds(double count, bool tensor_cores, ScalarType type, Work& work);

// mma.sync (warps) is slower than wgmma (warpgroups): its operations count this many times.
double mma_sync_cost(const Target& target);

}  // namespace fusec
