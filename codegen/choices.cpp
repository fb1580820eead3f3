#include "codegen/choices.h"

#include <algorithm>

namespace fusec {

std::size_t Choices::take(std::vector<std::string> ways) {
  if (!ways_.empty() || ways.empty()) return 0;
  ways_ = std::move(ways);
  const auto at = std::ranges::find(ways_, wanted_);
  return at == ways_.end() ? 0 : static_cast<std::size_t>(at - ways_.begin());
}

}  // namespace fusec
