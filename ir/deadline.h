// A point in time after which nothing new is begun, as --plan-deadline sets for planning. Unlike a limit of
// ir/budget.h, passing it is no error.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

namespace fusec {

class Deadline {
 public:
  Deadline() = default;  // never passes
  static Deadline in(double seconds) {
    constexpr double kEndless = 1e9;  // the clock can still add these
    Deadline deadline;
    deadline.at_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(std::min(seconds, kEndless)));
    return deadline;
  }
  bool has_passed() const { return at_ && Clock::now() >= *at_; }

 private:
  using Clock = std::chrono::steady_clock;
  std::optional<Clock::time_point> at_;
};

}  // namespace fusec
