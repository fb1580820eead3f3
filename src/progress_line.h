// One line on a terminal that shows the current stage of a program and its time, rewritten in place. It appears after
// one second and disappears when the work is done.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace fusec {

class ProgressLine {
 public:
  // If `shown` is false, never prints anything.
  explicit ProgressLine(bool shown);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void set(std::string text);
  void erase();  // removes the line before other output
  void end();    // removes the line for good

 private:
  void draw();

  std::mutex mutex_;
  std::condition_variable ended_;
  std::string text_;
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
  bool is_drawn_ = false, is_over_ = false;
  std::thread thread_;
};

}  // namespace fusec
