#include "ir/threads.h"

#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "ir/budget.h"

namespace fusec {

void in_threads(std::size_t count, const std::function<void(std::size_t)>& work) {
  const auto within_budget = [&work, budget = current_budget()](std::size_t i) {
    const BudgetScope scope(budget);
    work(i);
  };
  std::vector<std::thread> threads;
  try {
    while (threads.size() + 1 < count) threads.emplace_back(within_budget, threads.size() + 1);
  } catch (const std::system_error&) {
  } catch (const std::bad_alloc&) {
  }
  work(0);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace fusec
