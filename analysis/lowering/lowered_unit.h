// What a group becomes (schedule/lowering/lower_group): kernels, ops without a formula, views.
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
    kSpecial,  // `node`, an op without a formula; its operands are in memory
    kAlias,    // `value` has the elements of `of`, in the same order: no work
  };
  Kind kind = Kind::kKernel;
  Kernel kernel;
  NodeId node = kNone;
  ValueId value = kNone, of = kNone;
  std::vector<ValueId> inner = {};                     // of what the kernel stores: what nobody but other units needs
  std::shared_ptr<const FormOfKernel> form = nullptr;  // of `kernel`, as it is; null for what is none
};

}  // namespace fusec
