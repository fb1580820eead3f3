// A kernel to be: the values of a group that it stores, before their formulas are put together
// (analysis/lowering/partition_into_units, analysis/lowering/build_kernel). Or an op without a formula, or a view.
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
  bool reduces = false, contraction = false, vector_product = false, nested = false;
  bool joined = false;  // several contractions, or one that is read at other indices: if its form allows
  std::vector<bool> rows;
  std::set<ValueId> reads;
  ValueId space = kNone;                   // the value whose shape the kernel runs over
  std::map<ValueId, DimsInSpace> smaller;  // values that have an element a row, or other dimensions of extent 1
  // Values of another shape with as many elements, in the same order: of rows, where the space is of their segments.
  // The unit is here only if that is what its kernel is (schedule/reduction/row_segments).
  std::set<ValueId> reshaped = {};
  std::vector<ValueId> tentative;  // values that are here only if the kernel is rows throughout
  std::optional<ConcatPart> part;  // of the only value no more than this
};

inline bool contains(const KernelUnit& unit, ValueId v) {
  return std::find(unit.values.begin(), unit.values.end(), v) != unit.values.end();
}

// Does the value's formula stand in the unit's expressions, rather than a load of it?
inline bool is_substituted(const Inlining& inlining, const KernelUnit& unit, ValueId v) {
  return inlining.facts(v) && (inlining.substituted(v) || contains(unit, v));
}

// What was found out about sharing kernels by building them.
struct SharingLimits {
  std::set<ValueId> alone;     // products that share no kernel with others
  std::set<ValueId> not_rows;  // values with which a kernel was not rows throughout
  std::set<ValueId> across;    // reductions that go across those of the unit, in a tensor that both read
  bool no_sharing = false;
  bool try_segments = false;  // rows may share a kernel with what reduces segments of them
};

}  // namespace fusec
