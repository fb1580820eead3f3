#include "ir/large_vector.h"

#include <malloc.h>
#include <sys/mman.h>

#include <cstdint>
#include <limits>
#include <new>

#include "ir/budget.h"

namespace fusec {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::uintptr_t kPage = 4096;

}  // namespace

// The block comes from the heap and is not rounded up to huge pages. Blocks are therefore adjacent, share huge pages,
// and fit into the space of freed blocks.
void* allocate_large(std::size_t bytes) {
  if (bytes < kHugePage) return ::operator new(bytes);
  require_memory(bytes);
  void* block = ::operator new(bytes);
  const auto begin = reinterpret_cast<std::uintptr_t>(block);
  const std::uintptr_t first = (begin + kPage - 1) / kPage * kPage, last = (begin + bytes) / kPage * kPage;
  madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);  // the block works too if this is refused
  return block;
}

void free_large(void* block) noexcept {
  ::operator delete(block);
}

void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_MMAP_MAX, 0);  // glibc refuses an M_MMAP_THRESHOLD over 32 MiB
#endif
}

}  // namespace fusec
