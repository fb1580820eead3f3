// Caches the forms of kernels. Trial lowering (schedule/lowering/trial_lowering) lowers groups again with other nodes,
// and most of their kernels then recur. A form depends on its kernel only, so entries never become stale.
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
