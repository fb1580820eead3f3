// An allocator that keeps freed small blocks in lists of the freeing thread, from which that thread allocates again.
// Index expressions allocate and free a list in each operation, for which malloc is several times as dear.
//
// A free list keeps at most 256 KiB, the rest goes back to operator delete. Built with the address sanitizer, nothing
// is kept, so that a use after free is still found.
#pragma once

#include <cstddef>
#include <new>

namespace fusec {

// The two halves, also for another allocator (src/operator_new.cpp): a kept block of at least `bytes` bytes, or
// nullptr; and whether the thread keeps a block of so many bytes, which the caller must not free then.
void* take_kept(std::size_t bytes) noexcept;
bool keep(void* block, std::size_t bytes) noexcept;

void* pool_allocate(std::size_t bytes);
void pool_deallocate(void* block, std::size_t bytes) noexcept;

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
