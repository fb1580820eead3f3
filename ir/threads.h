// Runs one task in several threads.
#pragma once

#include <cstddef>
#include <functional>

namespace fusec {

// Runs work(0) in this thread and work(1) to work(count - 1) in new threads, and returns when all have ended. All count
// against the calling thread's budget. Fewer run if the system refuses a thread (ulimit), so each call must take the
// next piece of the task until none is left. `work` must not throw.
void in_threads(std::size_t count, const std::function<void(std::size_t)>& work);

}  // namespace fusec
