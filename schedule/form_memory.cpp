#include "schedule/form_memory.h"

#include <utility>

namespace fusec {
namespace {

// Of all kernels that are kept, some 200 bytes each. Beyond, all begins anew: what is asked again is asked soon.
constexpr std::size_t kMostExpressionsKept = 100'000;

}  // namespace

std::shared_ptr<const FormOfKernel> FormMemory::of(const Kernel& kernel) {
  const auto [first, last] = known_.equal_range(kernel.pool.hash());
  for (auto it = first; it != last; ++it)
    if (it->second.kernel == kernel) return it->second.form;
  auto form = std::make_shared<const FormOfKernel>(form_of(kernel));
  if (expressions_ > kMostExpressionsKept) {
    known_.clear();
    expressions_ = 0;
  }
  expressions_ += kernel.pool.size();
  known_.emplace(kernel.pool.hash(), Known{kernel, form});
  return form;
}

}  // namespace fusec
