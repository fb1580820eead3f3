// An allocator that keeps freed small blocks in lists of the freeing thread, from which that thread allocates again.
// Index expressions allocate and free a list in each operation, for which malloc is several times as dear.
//
// A free list holds at most kMostKept blocks of a size, the rest go back to operator delete. Built with the address
// sanitizer, every block goes through operator new, so that a use after free is still found.
#pragma once

#include <cstddef>
#include <new>

namespace fusec {

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
