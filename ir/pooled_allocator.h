// An allocator that keeps freed small blocks in lists of the freeing thread, from which that thread allocates again.
// Index expressions allocate and free a list in each operation, for which malloc is several times as dear.
//
// A free list keeps at most 256 KiB, so all lists of a thread at most 16 MiB; the rest goes back to operator delete.
// Built with the address or thread sanitizer, nothing is kept, so that a use after free is still found.
#pragma once

#include <array>
#include <cstddef>
#include <new>

namespace fusec {

// The free lists of a thread. They also serve another allocator (src/operator_new.cpp).
struct FreeLists {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static constexpr std::size_t kLargest = 0;
#elif defined(__has_feature)
  static constexpr std::size_t kLargest =
      __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ? 0 : 1024;
#else
  static constexpr std::size_t kLargest = 1024;  // bytes
#endif
  static constexpr std::size_t kStep = 16;  // bytes between two sizes

  struct Block {
    Block* next;
  };
  struct List {
    Block* first;
    std::size_t kept;  // bytes
  };

  // A kept block of at least `bytes` bytes, or nullptr.
  void* take(std::size_t bytes) noexcept {
    if (bytes > kLargest) return nullptr;
    List& list = of_size[(bytes + kStep - 1) / kStep];
    Block* const block = list.first;
    if (!block) return nullptr;
    list.first = block->next;
    list.kept -= rounded_up(bytes);
    return block;
  }

  // Whether the thread keeps a block of so many bytes. The caller frees one that it does not keep.
  bool keep(void* block, std::size_t bytes) noexcept {
    if (bytes < kStep || bytes >= kLargest + kStep) return false;
    List& list = of_size[bytes / kStep];
    if (list.kept >= most_kept) return keep_at_limit(block, bytes);
    list.first = ::new (block) Block{list.first};
    list.kept += bytes / kStep * kStep;
    return true;
  }

  // The bytes to allocate for a block of `bytes`: what a list can hold is a multiple of kStep.
  static std::size_t rounded_up(std::size_t bytes) {
    return bytes > kLargest ? bytes : (bytes + kStep - 1) / kStep * kStep;
  }
  bool keep_at_limit(void* block, std::size_t bytes) noexcept;

  std::array<List, kLargest / kStep + 1> of_size;
  std::size_t most_kept;  // bytes in a list; 0 before the thread keeps a first block, and at its end
  bool is_noted;          // this thread's end has been noted
};
extern constinit thread_local FreeLists free_lists;

inline void* pool_allocate(std::size_t bytes) {
  if (void* const kept = free_lists.take(bytes)) return kept;
  return ::operator new(FreeLists::rounded_up(bytes));
}

inline void pool_deallocate(void* block, std::size_t bytes) noexcept {
  if (!free_lists.keep(block, FreeLists::rounded_up(bytes))) ::operator delete(block);
}

template <typename T>
struct PooledAllocator {
  using value_type = T;
  static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);

  PooledAllocator() = default;
  template <typename U>
  PooledAllocator(const PooledAllocator<U>&) {}  // NOLINT(google-explicit-constructor): allocators convert

  T* allocate(std::size_t count) { return static_cast<T*>(pool_allocate(count * sizeof(T))); }
  void deallocate(T* items, std::size_t count) noexcept { pool_deallocate(items, count * sizeof(T)); }

  template <typename U>
  bool operator==(const PooledAllocator<U>&) const {
    return true;
  }
};

}  // namespace fusec
