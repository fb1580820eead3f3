// CUB's block and warp primitives, compiled by nvcc from tests/emulator/kernels/cub.cu: code that nobody here wrote.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "emulator/compile.h"
#include "emulator/harness.h"

using namespace fusec::emulator;
using namespace fusec::emulator::testing;

namespace {

constexpr int kThreads = 128, kItems = 4, kCount = kThreads * kItems;

template <class In, class Out>
std::vector<Out> run_kernel(const Module& module, const char* kernel, std::vector<In> x, std::size_t size) {
  std::vector<Out> y(size);
  Memory memory;
  const auto xi = memory.add({.name = "x", .bytes = std::as_writable_bytes(std::span(x)), .writable = false});
  const auto yi = memory.add({.name = "y", .bytes = std::as_writable_bytes(std::span(y)), .initialized = false});
  const Report report = run(module,
                            {.kernel = kernel,
                             .block = {kThreads},
                             .arguments = {pointer_argument(memory, xi), pointer_argument(memory, yi)}},
                            memory);
  CAPTURE(kernel);
  INFO(describe(report));
  CHECK(report.findings.empty());
  CHECK(!memory.first_unwritten(yi));
  return y;
}

template <class T>
std::vector<T> random_values(std::uint32_t below) {
  std::mt19937 random(13);
  std::vector<T> values(kCount);
  for (T& value : values) value = static_cast<T>(random() % below);
  return values;
}

}  // namespace

TEST_SUITE("nvcc") {
  TEST_CASE("CUB") {
    const Module* module = compiled_module("cub.cu", "sm_80");
    if (module == nullptr) return;
    const std::vector<int> x = random_values<int>(1000);
    CHECK(run_kernel<int, int>(*module, "block_reduce", x, 1)[0] == std::accumulate(x.begin(), x.end(), 0));
    CHECK(run_kernel<int, int>(*module, "block_reduce_raking", x, 1)[0] ==
          std::accumulate(x.begin(), x.begin() + kThreads, 0));
    std::vector<int> sums(kCount);
    std::partial_sum(x.begin(), x.end(), sums.begin());
    CHECK(run_kernel<int, int>(*module, "block_scan", x, kCount) == sums);
    const std::vector<unsigned> keys = random_values<unsigned>(0xffffffffu);
    std::vector<unsigned> sorted = keys;
    std::sort(sorted.begin(), sorted.end());
    CHECK(run_kernel<unsigned, unsigned>(*module, "block_sort", keys, kCount) == sorted);
    // The last thread's merge does read one element behind the tile, and throws it away.
    CHECK(run_kernel<unsigned, unsigned>(*module, "block_merge_sort", keys, kCount) == sorted);
    const std::vector<unsigned char> letters = random_values<unsigned char>(16);
    const std::vector<int> bins = run_kernel<unsigned char, int>(*module, "block_histogram", letters, 16);
    for (int i = 0; i < 16; ++i) CHECK(bins[i] == std::count(letters.begin(), letters.end(), i));
    const std::vector<int> warps =
        run_kernel<int, int>(*module, "warp_primitives", x, kThreads + kThreads / 32 + kThreads / 8);
    for (int t = 0; t < kThreads; ++t) {
      const auto warp = x.begin() + t / 32 * 32;
      CHECK(warps[t] == std::accumulate(warp, x.begin() + t, 0));
      CHECK(warps[kThreads + t / 32] == std::accumulate(warp, warp + 32, 0));
      const auto group = x.begin() + t / 8 * 8;
      CHECK(warps[kThreads + kThreads / 32 + t / 8] == *std::max_element(group, group + 8));
    }
  }
}
