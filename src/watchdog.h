// A thread that ends the program when it exceeds a limit and no pass notices, because NVRTC runs or a read or write
// blocks. Only programs use it; a library must not end its process.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "ir/budget.h"

namespace fusec {

class Watchdog {
 public:
  // `tell` is called with the message just before the program ends.
  Watchdog(Budget& budget, std::function<void(const std::string&)> tell);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void watch();

  Budget& budget_;
  std::function<void(const std::string&)> tell_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace fusec
