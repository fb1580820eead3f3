// Forms of kernels, each found once. Groups that are lowered on trial (schedule/lowering/trial_lowering) are lowered
// again with other nodes, and most of their kernels are the same then.
//
// A kernel's form follows from the kernel alone, so that nothing here ever becomes wrong.
#pragma once

#include <cstddef>
#include <memory>
#include <unordered_map>

#include "schedule/kernel_forms.h"

namespace fusec {

class FormMemory {
 public:
  std::shared_ptr<const FormOfKernel> of(const Kernel& kernel);

 private:
  struct Known {
    Kernel kernel;
    std::shared_ptr<const FormOfKernel> form;
  };
  std::unordered_multimap<std::size_t, Known> known_;  // by the pool's hash
  std::size_t expressions_ = 0;                        // of the kernels there
};

}  // namespace fusec
