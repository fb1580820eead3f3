// What schedule/lowering/lower_group turns a group into: kernels, ops without a formula, and views.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "analysis/kernel/kernel.h"
#include "ir/graph.h"

namespace fusec {

struct FormOfKernel;

struct LoweredUnit {
  enum class Kind : std::uint8_t {
    kKernel,   // `kernel`
    kSpecial,  // `node`, an op without a formula, which reads its operands from memory
    kAlias,    // `value` has the elements of `of` in the same order; launches nothing
  };
  Kind kind = Kind::kKernel;
  Kernel kernel;
  NodeId node = kNone;
  ValueId value = kNone, of = kNone;
  std::vector<ValueId> inner = {};                     // stored values that only other units of the group read
  std::shared_ptr<const FormOfKernel> form = nullptr;  // form of the unchanged `kernel`; null for other kinds
};

}  // namespace fusec
