#include "heap.h"

#include <cstdint>
#include <cstdlib>

#ifdef __GLIBC__
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#endif

#include "ir/large_vector.h"

namespace fusec {

void prepare_heap() noexcept {
#ifdef __GLIBC__
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY) return;
  constexpr std::size_t kStep = std::size_t{32} << 20;  // bytes that the heap grows by
  constexpr std::size_t kPage = 4096;
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  mallopt(M_TOP_PAD, static_cast<int>(kStep));
  keep_freed_memory();
  const auto end = [] { return reinterpret_cast<std::uintptr_t>(sbrk(0)); };
  const std::uintptr_t begin = (end() + kPage + kHugePage - 1) / kHugePage * kHugePage;
  // The heap's headers then lie in the page before the first huge page: a huge page must not be touched before madvise.
  sbrk(static_cast<std::intptr_t>(begin - kPage - end()));
  void* volatile block = std::malloc(kStep / 2);  // makes the heap grow; volatile, or GCC omits it
  std::free(block);
  if (begin < end()) madvise(reinterpret_cast<void*>(begin), end() - begin, MADV_HUGEPAGE);
#endif
}

}  // namespace fusec
