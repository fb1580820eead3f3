#include "ir/budget.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstring>

#include "ir/error.h"

namespace fusec {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kStepsBetweenLooks = 64;
constexpr std::int64_t kNanosecondsBetweenLooksAtMemory = 2'000'000;
constexpr std::size_t kSmallBlock = std::size_t{1} << 20;  // bytes; allocated without a check
constexpr double kMiB = 1 << 20;

constinit thread_local Budget* budget_of_thread = nullptr;

std::int64_t steps_for(const Budget* budget) {
  return budget && budget->is_limited() ? kStepsBetweenLooks : std::numeric_limits<std::int64_t>::max();
}

// Resident bytes of the process: the second number of statm is pages. -1 if it cannot be read.
std::int64_t resident_bytes(int statm) {
  static const std::int64_t page = sysconf(_SC_PAGESIZE);
  std::array<char, 64> text;
  const ssize_t length = pread(statm, text.data(), text.size(), 0);
  if (length <= 0) return -1;
  const char* const end = text.data() + length;
  const char* const blank = static_cast<const char*>(std::memchr(text.data(), ' ', static_cast<std::size_t>(length)));
  std::int64_t pages = 0;
  if (!blank || std::from_chars(blank + 1, end, pages).ec != std::errc()) return -1;
  return pages * page;
}

}  // namespace

Budget::Budget(const ResourceLimits& limits, Memory memory) : limits_(limits), start_(Clock::now()), stage_("start") {
  if (!(limits.seconds >= 0) || limits.memory_bytes < 0 || limits.file_bytes < 0)
    throw Error(ErrorKind::kUsage, {.what = "a limit on time, memory or file size",
                                    .found = "a negative number",
                                    .expected = "a positive one, or 0 for no limit"});
  if (limits.memory_bytes == 0) return;
  statm_ = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  const std::int64_t resident = resident_bytes(statm_);
  if (resident < 0) {
    if (statm_ >= 0) ::close(statm_);
    throw Error(ErrorKind::kEnvironment, {.what = "memory cannot be limited",
                                          .found = "no /proc/self/statm",
                                          .expected = "a system that tells how much memory a process has"});
  }
  if (memory == Memory::kAdded) memory_at_start_ = resident;
}

Budget::~Budget() {
  if (statm_ >= 0) ::close(statm_);
}

void Budget::enter(std::string_view stage) {
  const std::lock_guard lock(mutex_);
  stage_ = stage;
}

double Budget::seconds_taken() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

std::int64_t Budget::memory_taken() const {
  return resident_bytes(statm_) - memory_at_start_;
}

void Budget::fail(Limit limit, std::int64_t memory) {
  exceeded_ = limit;
  std::string stage;
  {
    const std::lock_guard lock(mutex_);
    stage = stage_;
  }
  if (limit == Limit::kTime)
    throw Error(ErrorKind::kInput, {.what = fmt::format("the time limit is exceeded (stage {})", stage),
                                    .found = fmt::format("{:.2f} s", seconds_taken()),
                                    .expected = fmt::format("at most {:g} s", limits_.seconds),
                                    .hint = "--timeout=SECONDS (ResourceLimits::seconds in the library) raises it"});
  throw Error(ErrorKind::kInput,
              {.what = fmt::format("the memory limit is exceeded (stage {})", stage),
               .found = fmt::format("{:.1f} MiB", static_cast<double>(memory) / kMiB),
               .expected = fmt::format("at most {:.6g} MiB", static_cast<double>(limits_.memory_bytes) / kMiB),
               .hint = "--max-memory=SIZE (ResourceLimits::memory_bytes in the library) raises it"});
}

void Budget::require(std::int64_t more) {
  if (exceeded_ != Limit::kNothing) fail(exceeded_, statm_ >= 0 ? memory_taken() : 0);
  const std::int64_t now = std::chrono::nanoseconds(Clock::now() - start_).count();
  if (limits_.seconds > 0 && static_cast<double>(now) > limits_.seconds * 1e9) fail(Limit::kTime, 0);
  if (statm_ < 0 || (more == 0 && now < next_look_at_memory_.load(std::memory_order_relaxed))) return;
  next_look_at_memory_.store(now + kNanosecondsBetweenLooksAtMemory, std::memory_order_relaxed);
  const std::int64_t taken = memory_taken();
  if (taken > limits_.memory_bytes - more) fail(Limit::kMemory, taken + more);
}

std::optional<std::string> Budget::excess(double tolerance) {
  const bool late = limits_.seconds > 0 && seconds_taken() > limits_.seconds * tolerance;
  const std::int64_t memory = statm_ >= 0 ? memory_taken() : 0;
  if (!late && !(static_cast<double>(memory) > static_cast<double>(limits_.memory_bytes) * tolerance))
    return std::nullopt;
  try {
    fail(late ? Limit::kTime : Limit::kMemory, memory);
  } catch (const Error& error) {
    return error.what();
  }
}

BudgetScope::BudgetScope(Budget* budget) : before_(budget_of_thread) {
  budget_of_thread = budget;
  steps_until_look = steps_for(budget);
}

BudgetScope::~BudgetScope() {
  budget_of_thread = before_;
  steps_until_look = steps_for(before_);
}

Budget* current_budget() {
  return budget_of_thread;
}

void look_at_budget() {
  if (budget_of_thread) budget_of_thread->require();
  steps_until_look = steps_for(budget_of_thread);
}

void require_memory(std::size_t bytes) {
  constexpr std::size_t kMost = std::numeric_limits<std::int64_t>::max();
  if (bytes < kSmallBlock) return count_step();
  if (budget_of_thread && budget_of_thread->is_limited())
    budget_of_thread->require(static_cast<std::int64_t>(std::min(bytes, kMost)));
}

void enter_stage(std::string_view stage) {
  if (budget_of_thread) budget_of_thread->enter(stage);
}

}  // namespace fusec
