// Ends a program that is past a limit where no pass notices: NVRTC is at work, or a read or write blocks. A program may
// do so; a library may not end its process.
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
  // `tell` gets the message just before the end.
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
