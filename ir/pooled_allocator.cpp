#include "ir/pooled_allocator.h"

#include <pthread.h>

namespace fusec {
namespace {

// Runs when a thread other than the first ends, behind the destructors of its variables.
void empty_lists(void* of_thread) {
  FreeLists& lists = *static_cast<FreeLists*>(of_thread);
  lists.most_kept = 0;  // operator delete keeps no more
  for (FreeLists::List& list : lists.of_size)
    while (FreeLists::Block* const block = list.first) {
      list.first = block->next;
      ::operator delete(block);
    }
}

// Has empty_lists run at the end of this thread. A thread_local variable with a destructor would allocate at its first
// use, and glibc ends the program where that fails.
void note_thread() {
  static pthread_key_t key{};
  static const bool is_made = pthread_key_create(&key, empty_lists) == 0;
  if (is_made) pthread_setspecific(key, &free_lists);
}

}  // namespace

constinit thread_local FreeLists free_lists{};

bool FreeLists::keep_at_limit(void* block, std::size_t bytes) noexcept {
  constexpr std::size_t kMostKept = std::size_t{256} << 10;
  if (is_noted) return false;
  note_thread();
  is_noted = true;
  most_kept = kMostKept;
  return keep(block, bytes);
}

}  // namespace fusec
