// Several threads that share one work.
#pragma once

#include <cstddef>
#include <functional>

namespace fusec {

// Runs work(0) here and work(1) to work(count - 1) in threads of their own, and returns when all have. They work for
// the budget of the calling thread. Where the system has no room for a thread (ulimit), fewer run, so each takes the
// next piece of the work until none is left. `work` must not throw.
void in_threads(std::size_t count, const std::function<void(std::size_t)>& work);

}  // namespace fusec
