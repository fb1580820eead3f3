#include "ir/pooled_allocator.h"

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

// Without a destructor, since static expressions are freed after the thread's other variables.
constinit thread_local std::array<FreeList, kLargest / kStep + 1> lists{};
constinit thread_local bool is_closed = false;

// Frees the thread's lists at its end. What is returned later goes straight to operator delete.
struct Closer {
  Closer() = default;
  Closer(const Closer&) = delete;
  Closer& operator=(const Closer&) = delete;
  ~Closer() {
    is_closed = true;
    for (FreeList& list : lists)
      while (FreeBlock* const block = list.first) {
        list.first = block->next;
        ::operator delete(block);
      }
  }
  void touch() const {}  // constructs it
};
thread_local const Closer closer;

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
  if (bytes > kLargest || is_closed) return ::operator delete(block);
  FreeList& list = lists[list_of(bytes)];
  if (list.kept == kMostKept) return ::operator delete(block);
  if (list.kept == 0) closer.touch();
  list.first = ::new (block) FreeBlock{list.first};
  ++list.kept;
}

}  // namespace fusec
