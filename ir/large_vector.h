// Vectors with an entry for every node or value of a graph. A million entries span thousands of 4 KiB pages: the system
// clears each page on first touch, and lookups miss the TLB. Large blocks therefore use huge pages, so a node of a
// large graph costs about as much as a node of a small one.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace fusec {

// Memory from the heap, on huge pages if the block is large and the system has them. Throws std::bad_alloc.
void* allocate_large(std::size_t bytes);
void free_large(void* block) noexcept;

// Keeps freed memory in the heap. Passes allocate and free arrays of the same sizes one after another; if each went
// back to the system, clearing its pages again would cost as much as a pass. For programs to call at their start; a
// library does not decide this for its process.
void keep_freed_memory();

template <typename T>
struct LargeAllocator {
  using value_type = T;
  LargeAllocator() = default;
  template <typename Other>
  LargeAllocator(const LargeAllocator<Other>&) {}  // NOLINT(google-explicit-constructor): what an allocator is

  T* allocate(std::size_t count) {
    if (count > static_cast<std::size_t>(-1) / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(allocate_large(count * sizeof(T)));
  }
  void deallocate(T* block, std::size_t) noexcept { free_large(block); }
  bool operator==(const LargeAllocator&) const { return true; }
};

template <typename T>
using LargeVector = std::vector<T, LargeAllocator<T>>;

}  // namespace fusec
