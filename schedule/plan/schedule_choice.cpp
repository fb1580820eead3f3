#include "schedule/plan/schedule_choice.h"

#include <algorithm>

namespace fusec {

std::size_t ScheduleChoice::take(std::vector<std::string> candidates) {
  if (!candidates_.empty() || candidates.empty()) return 0;
  candidates_ = std::move(candidates);
  const auto at = std::ranges::find(candidates_, wanted_);
  return at == candidates_.end() ? 0 : static_cast<std::size_t>(at - candidates_.begin());
}

}  // namespace fusec
