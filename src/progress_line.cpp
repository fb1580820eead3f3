#include "progress_line.h"

#include <utility>

#include "messages.h"
#include "terminal.h"

namespace fusec {
namespace {

constexpr std::chrono::milliseconds kStep{250};
constexpr std::chrono::seconds kQuick{1};
constexpr const char* kClear = "\r\033[K";

}  // namespace

ProgressLine::ProgressLine(bool shown) {
  if (shown) thread_ = std::thread([this] { draw(); });
}

ProgressLine::~ProgressLine() {
  end();
}

void ProgressLine::set(std::string text) {
  const std::scoped_lock lock(mutex_);
  text_ = std::move(text);
}

void ProgressLine::erase() {
  const std::scoped_lock lock(mutex_);
  if (std::exchange(is_drawn_, false)) print_message("{}", kClear);
}

void ProgressLine::end() {
  {
    const std::scoped_lock lock(mutex_);
    is_over_ = true;
  }
  ended_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ProgressLine::draw() {
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, kStep, [&] { return is_over_; })) {
    const auto passed = std::chrono::steady_clock::now() - since_;
    if (passed < kQuick || text_.empty()) continue;
    const std::string time = fmt::format(" ({} s)", std::chrono::duration_cast<std::chrono::seconds>(passed).count());
    const std::size_t room = terminal_width() - 1 - time.size();
    const std::string shown = text_.size() <= room ? text_ : text_.substr(0, room - 3) + "...";
    print_message("{}{}{}", kClear, shown, time);
    is_drawn_ = true;
  }
  if (is_drawn_) print_message("{}", kClear);
}

}  // namespace fusec
