// Builds the expressions of one kernel: substitutes formulas for loads, starting from the values of a unit, until only
// tensors in memory are loaded.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "analysis/kernel/kernel.h"
#include "analysis/lowering/kernel_unit.h"
#include "ir/graph.h"

namespace fusec {

// What building asks of the inlining about a value that a formula loads.
struct AskedOfInlining {
  ValueId value = kNone;
  bool substituted = false, feeds_quantization = false, stored_alongside = false;
  bool operator==(const AskedOfInlining&) const = default;
};
AskedOfInlining ask_inlining(const Graph& graph, const Inlining& inlining, const KernelUnit& unit, ValueId v);

struct BuiltKernel {
  Kernel kernel;
  std::map<ExprId, ValueId> reduction_of;  // reductions of contractions: the value whose formula contains it
  // by value: how many copies of its formula, at different indices, the kernel has
  std::map<ValueId, std::size_t> copies;
  ValueId over_duplicated = kNone;  // a value whose substitution exceeded the limits; the kernel is then not built
  // Another group's kernel of this unit is the same if its inlining answers `asked` alike and its `most_expressions`
  // are no fewer.
  std::vector<AskedOfInlining> asked = {};
  std::size_t most_expressions = 0;  // while it was built
};

// Most expressions of a kernel of these nodes while it is built. Beyond them a value is stored.
std::size_t most_expressions(const Graph& graph, const std::vector<NodeId>& nodes);

// `nodes` are the group's nodes in topological order. With `round_intermediates` every substituted value is rounded to
// its declared dtype.
BuiltKernel build_kernel(const Graph& graph, const std::vector<NodeId>& nodes, const Inlining& inlining,
                         const KernelUnit& unit, bool round_intermediates);

}  // namespace fusec
