// operator new and delete of the programs: small blocks come from the free lists of ir/pooled_allocator.h, since a
// compilation allocates so often that malloc would take much of its time. Every block is one of malloc and holds a
// multiple of 16 bytes, which sized delete relies on. Libraries loaded at run time (NVRTC, a compiled host part) keep
// their own operators: no object that one side allocates is deleted by the other. The fusec libraries do not have this
// file, since a program that links them may replace these operators itself.
#include <cstdlib>
#include <new>

#include "ir/pooled_allocator.h"

#ifdef __GLIBC__
#include <malloc.h>

void* operator new(std::size_t bytes) {
  if (void* const kept = fusec::free_lists.take(bytes)) return kept;
  while (true) {
    if (void* const block = std::malloc(fusec::FreeLists::rounded_up(bytes))) return block;
    const std::new_handler handler = std::get_new_handler();
    if (!handler) throw std::bad_alloc();
    handler();
  }
}

void operator delete(void* block) noexcept {
  if (block && !fusec::free_lists.keep(block, malloc_usable_size(block))) std::free(block);
}

// Reads nothing of the block, which is often not in the cache.
void operator delete(void* block, std::size_t bytes) noexcept {
  if (block && !fusec::free_lists.keep(block, fusec::FreeLists::rounded_up(bytes))) std::free(block);
}
#endif
