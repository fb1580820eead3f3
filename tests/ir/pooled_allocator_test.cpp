#include "ir/pooled_allocator.h"

#include <doctest/doctest.h>

#include <thread>
#include <vector>

using namespace fusec;

TEST_CASE("a freed block is the next one of its size") {
  if (FreeLists::kLargest == 0) return;  // under the address sanitizer nothing is kept
  void* const block = pool_allocate(40);
  pool_deallocate(block, 40);
  void* const other_size = pool_allocate(64);
  CHECK(other_size != block);
  void* const same_size = pool_allocate(33);  // sizes are multiples of 16 bytes: 48, as of 40
  CHECK(same_size == block);
  pool_deallocate(other_size, 64);
  pool_deallocate(same_size, 33);
}

TEST_CASE("a list keeps so many bytes, the rest is freed") {
  if (FreeLists::kLargest == 0) return;
  constexpr std::size_t kBytes = 512;
  std::vector<void*> blocks;
  for (int i = 0; i < 2000; ++i) blocks.push_back(pool_allocate(kBytes));
  for (void* const block : blocks) pool_deallocate(block, kBytes);
  CHECK(free_lists.of_size[kBytes / FreeLists::kStep].kept == free_lists.most_kept);
  CHECK(free_lists.most_kept < blocks.size() * kBytes);
}

TEST_CASE("larger blocks are not kept") {
  void* const block = ::operator new(4096);
  CHECK(!free_lists.keep(block, 4096));
  CHECK(free_lists.take(4096) == nullptr);
  ::operator delete(block);
}

TEST_CASE("each thread has lists of its own, which it frees at its end") {
  if (FreeLists::kLargest == 0) return;
  void* const block = pool_allocate(96);
  std::thread([&] {
    pool_deallocate(block, 96);  // of another thread
    void* const again = pool_allocate(96);
    CHECK(again == block);
    pool_deallocate(again, 96);
  }).join();
}
