#include "kernel_at_hints.h"

#include <algorithm>

namespace fusec {

std::vector<std::int64_t> hints_of(const Symbols& symbols) {
  std::vector<std::int64_t> hints;
  for (const Symbol& symbol : symbols) hints.push_back(symbol.hint);
  return hints;
}

const LaunchStep::Specialization* form_at_hints(const LaunchStep& step, const std::vector<std::int64_t>& hints) {
  const auto form = std::ranges::find_if(
      step.special, [&](const LaunchStep::Specialization& special) { return holds(special.guard, hints); });
  return form == step.special.end() ? nullptr : &*form;
}

std::uint32_t kernel_at_hints(const LaunchStep& step, const std::vector<std::int64_t>& hints) {
  if (step.kind != LaunchStep::Kind::kKernel) return kNone;
  const LaunchStep::Specialization* form = form_at_hints(step, hints);
  return form ? form->kernel : step.kernel;
}

}  // namespace fusec
