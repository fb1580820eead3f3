#include "ir/pooled_allocator.h"

#include <pthread.h>

#include <array>
#include <cstdint>

namespace fusec {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kLargest = 0;
#elif defined(__has_feature)
constexpr std::size_t kLargest = __has_feature(address_sanitizer) ? 0 : 1024;
#else
constexpr std::size_t kLargest = 1024;  // bytes
#endif
constexpr std::size_t kStep = 16;                          // bytes between two sizes
constexpr std::size_t kMostKept = std::size_t{256} << 10;  // bytes in a list

struct FreeBlock {
  FreeBlock* next;
};
struct FreeList {
  FreeBlock* first;
  std::size_t kept;  // bytes
};

struct FreeLists {
  std::array<FreeList, kLargest / kStep + 1> of_size;
  std::size_t most_kept;  // bytes in a list; 0 before the thread keeps a first block, and at its end
  bool is_noted;          // note_thread has run
};
constinit thread_local FreeLists lists{};

// Runs when a thread other than the first ends, behind the destructors of its variables.
void free_lists(void* of_thread) {
  lists.most_kept = 0;  // operator delete keeps no more
  for (FreeList& list : static_cast<FreeLists*>(of_thread)->of_size)
    while (FreeBlock* const block = list.first) {
      list.first = block->next;
      ::operator delete(block);
    }
}

// Has free_lists run at the end of this thread. A thread_local variable with a destructor would allocate at its first
// use, and glibc ends the program where that fails.
void note_thread() {
  static const pthread_key_t key = [] {
    pthread_key_t made{};
    pthread_key_create(&made, free_lists);
    return made;
  }();
  pthread_setspecific(key, &lists);
  lists.is_noted = true;
}

std::size_t rounded_up(std::size_t bytes) {
  return (bytes + kStep - 1) / kStep * kStep;
}

}  // namespace

void* take_kept(std::size_t bytes) noexcept {
  if (bytes > kLargest) return nullptr;
  const std::size_t size = rounded_up(bytes);
  FreeList& list = lists.of_size[size / kStep];
  FreeBlock* const block = list.first;
  if (!block) return nullptr;
  list.first = block->next;
  list.kept -= size;
  return block;
}

namespace {

// A call of its own, so that keep() saves no registers.
[[gnu::noinline]] bool keep_beyond_most(void* block, std::size_t bytes) noexcept {
  if (lists.is_noted) return false;
  note_thread();
  lists.most_kept = kMostKept;
  return keep(block, bytes);
}

}  // namespace

bool keep(void* block, std::size_t bytes) noexcept {
  if (bytes < kStep || bytes >= kLargest + kStep) return false;
  FreeList& list = lists.of_size[bytes / kStep];
  if (list.kept >= lists.most_kept) return keep_beyond_most(block, bytes);
  list.first = ::new (block) FreeBlock{list.first};
  list.kept += bytes / kStep * kStep;
  return true;
}

void* pool_allocate(std::size_t bytes) {
  if (void* const kept = take_kept(bytes)) return kept;
  return ::operator new(rounded_up(bytes));
}

void pool_deallocate(void* block, std::size_t bytes) noexcept {
  if (!keep(block, rounded_up(bytes))) ::operator delete(block);
}

}  // namespace fusec
