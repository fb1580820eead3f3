// Vectors with an entry for every node or value of a graph. A million entries span thousands of small pages: the kernel
// clears each on first touch, and looking one up misses the address caches. Large blocks ask for huge pages instead, so
// that a node of a large graph costs about what a node of a small one does.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace fusec {

// Memory from the heap, on huge pages where it is large and the system has such pages. Throws std::bad_alloc.
void* allocate_large(std::size_t bytes);
void free_large(void* block) noexcept;

// For a program to call when it starts (a library does not decide this for its process): freed memory stays with the
// heap. The passes allocate and free arrays of the same sizes one after the other; where each goes back to the system,
// clearing its pages anew costs as much as a pass.
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
