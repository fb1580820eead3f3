// A future kernel: the values of a group that it stores, before their formulas are substituted into one another. Also
// an op without a formula, or a view. analysis/lowering/partition_into_units makes units, and
// analysis/lowering/build_kernel turns them into kernels.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "analysis/lowering/concat_parts.h"
#include "analysis/lowering/inlining.h"
#include "analysis/lowering/lowered_unit.h"
#include "analysis/lowering/shared_space.h"

namespace fusec {

struct KernelUnit {
  LoweredUnit::Kind kind = LoweredUnit::Kind::kKernel;
  std::vector<ValueId> values;
  NodeId node = kNone;
  bool reduces = false, matmul = false, vector_contraction = false, nested = false;
  bool joined = false;  // has several contractions, or one read at other indices; a kernel only if its form allows
  std::vector<bool> rows;
  std::set<ValueId> reads;
  ValueId space = kNone;                   // value whose shape is the kernel's iteration space
  std::map<ValueId, DimsInSpace> smaller;  // values with fewer or other dimensions, such as one element per row
  // Values of another shape with as many elements in the same order: full rows, while the space splits them into
  // segments. The unit is valid only if its kernel has this form (schedule/reduction/row_segments).
  std::set<ValueId> reshaped = {};
  std::vector<ValueId> tentative;  // values that require the kernel to be rows throughout
  std::optional<ConcatPart> part;  // set if only this part of the only value is stored
};

inline bool contains(const KernelUnit& unit, ValueId v) {
  return std::find(unit.values.begin(), unit.values.end(), v) != unit.values.end();
}

// Returns whether the unit's expressions contain the formula of `v` instead of a load.
inline bool is_substituted(const Inlining& inlining, const KernelUnit& unit, ValueId v) {
  return inlining.facts(v) && (inlining.substituted(v) || contains(unit, v));
}

// What building kernels has shown about which values can share one.
struct SharingLimits {
  std::set<ValueId> alone;     // products that share a kernel with no other value
  std::set<ValueId> not_rows;  // values with which a kernel was not rows throughout
  std::set<ValueId> across;    // values that reduce a tensor along other axes than a unit that reads it too
  bool no_sharing = false;
  bool try_segments = false;  // rows may share a kernel with reductions of their segments
};

}  // namespace fusec
