// Limits on the time and memory of a compilation. Every loop with a length that depends on the input calls
// count_step().
//
//   Budget budget(limits);             // the clock starts
//   const BudgetScope scope(&budget);  // this thread now counts against the budget
//   for (...) count_step();            // throws Error once a limit is exceeded
//
// A step costs a decrement and a branch. Every 64th step of a thread with a limited budget reads the clock, and reads
// the process's memory at most every two milliseconds. Once a limit is exceeded, every further check throws, so no
// handler of an Error can continue the work.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "fusec/resource_limits.h"

namespace fusec {

class Budget {
 public:
  // kAdded counts memory beyond what the process has now (for a library); kOfProcess counts all of it (for a program).
  enum class Memory : std::uint8_t { kAdded, kOfProcess };

  // Throws Error(kUsage) for a negative limit, and Error(kEnvironment) when memory is limited but the system does not
  // tell how much the process has.
  explicit Budget(const ResourceLimits& limits, Memory memory = Memory::kAdded);
  ~Budget();
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  const ResourceLimits& limits() const { return limits_; }
  bool is_limited() const { return limits_.seconds > 0 || limits_.memory_bytes > 0; }
  bool is_exceeded() const { return exceeded_ != Limit::kNothing; }
  void enter(std::string_view stage);  // the stage that errors name

  // Throws Error(kInput) if a limit is exceeded, or would be with `more` bytes of memory.
  void require(std::int64_t more = 0);
  // The message that require() throws, if a limit times `tolerance` is exceeded; empty otherwise.
  std::optional<std::string> excess(double tolerance = 1);

 private:
  enum class Limit : std::uint8_t { kNothing, kTime, kMemory };

  double seconds_taken() const;
  std::int64_t memory_taken() const;
  [[noreturn]] void fail(Limit limit, std::int64_t memory);

  ResourceLimits limits_;
  std::chrono::steady_clock::time_point start_;
  int statm_ = -1;
  std::int64_t memory_at_start_ = 0;
  std::atomic<std::int64_t> next_look_at_memory_{0};  // nanoseconds since the start
  std::atomic<Limit> exceeded_{Limit::kNothing};
  std::mutex mutex_;
  std::string stage_;
};

// Sets the current thread's budget for a scope; null means no budget.
class BudgetScope {
 public:
  explicit BudgetScope(Budget* budget);
  ~BudgetScope();
  BudgetScope(const BudgetScope&) = delete;
  BudgetScope& operator=(const BudgetScope&) = delete;

 private:
  Budget* before_;
};

Budget* current_budget();  // this thread's budget; null when there is none
inline constinit thread_local std::int64_t steps_until_look = std::numeric_limits<std::int64_t>::max();
void look_at_budget();

inline void count_step() {
  if (--steps_until_look <= 0) [[unlikely]]
    look_at_budget();
}

// Call before allocating a block of this size. Throws as count_step() does.
void require_memory(std::size_t bytes);

// Sets the stage that errors of this thread's budget name.
void enter_stage(std::string_view stage);

}  // namespace fusec
