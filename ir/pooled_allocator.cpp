#include "ir/pooled_allocator.h"

#include <pthread.h>

#include <array>
#include <cstdint>

namespace fusec {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kLargest = 0;
#elif defined(__has_feature)
constexpr std::size_t kLargest = __has_feature(address_sanitizer) ? 0 : 256;
#else
constexpr std::size_t kLargest = 256;  // bytes
#endif
constexpr std::size_t kStep = 16;  // bytes between two sizes
constexpr std::uint32_t kMostKept = 4096;

struct FreeBlock {
  FreeBlock* next;
};
struct FreeList {
  FreeBlock* first;
  std::uint32_t kept;
};

using FreeLists = std::array<FreeList, kLargest / kStep + 1>;
constinit thread_local FreeLists lists{};

// Runs when a thread other than the first ends, behind the destructors of its variables.
void free_lists(void* of_thread) {
  for (FreeList& list : *static_cast<FreeLists*>(of_thread))
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
}

std::size_t list_of(std::size_t bytes) {
  return (bytes + kStep - 1) / kStep;
}

}  // namespace

void* pool_allocate(std::size_t bytes) {
  if (bytes > kLargest) return ::operator new(bytes);
  FreeList& list = lists[list_of(bytes)];
  if (FreeBlock* const block = list.first) {
    list.first = block->next;
    --list.kept;
    return block;
  }
  return ::operator new(list_of(bytes) * kStep);
}

void pool_deallocate(void* block, std::size_t bytes) noexcept {
  if (bytes > kLargest) return ::operator delete(block);
  FreeList& list = lists[list_of(bytes)];
  if (list.kept == kMostKept) return ::operator delete(block);
  if (list.kept == 0) note_thread();
  list.first = ::new (block) FreeBlock{list.first};
  ++list.kept;
}

}  // namespace fusec
