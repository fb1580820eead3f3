// One line on a terminal that says what a program is at and for how long, rewritten in place; it goes when the work is
// done. It shows itself only after a while, so that quick work shows nothing.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace fusec {

class ProgressLine {
 public:
  // Where `shown` is false it never shows anything.
  explicit ProgressLine(bool shown);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void set(std::string text);
  void erase();  // for what is printed meanwhile
  void end();    // the line goes for good

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
