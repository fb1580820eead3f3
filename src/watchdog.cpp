#include "watchdog.h"

#include <chrono>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "fusec/error.h"
#include "ir/new_file.h"

namespace fusec {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{4};
constexpr double kTolerance = 1.04;  // factor over the limit, so that passes notice first

}  // namespace

Watchdog::Watchdog(Budget& budget, std::function<void(const std::string&)> tell)
    : budget_(budget), tell_(std::move(tell)) {
  if (!budget.is_limited()) return;
  try {
    thread_ = std::thread([this] { watch(); });
  } catch (const std::system_error&) {
    // Without a thread only the passes enforce the limits.
  }
}

Watchdog::~Watchdog() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  ended_.notify_one();
  thread_.join();
}

void Watchdog::watch() {
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, kBetweenLooks, [this] { return is_over_; })) {
    const std::optional<std::string> excess = budget_.excess(kTolerance);
    if (!excess) continue;
    tell_(*excess);
    remove_unfinished_files();
    std::_Exit(static_cast<int>(ErrorKind::kInput));
  }
}

}  // namespace fusec
