// CUB's device-wide algorithms, launched by CUB's own host code: kernels/cub_device*.cu become a shared object whose
// CUDA runtime (kernels/emulated_runtime.cu) hands every launch to the emulator. The look-back scans spin on what
// other blocks write, so they also test that waiting blocks let the others run.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#include "emulator/emulated_library.h"

using namespace fusec::emulator::testing;

namespace {

template <class T>
const T* const_pointer(T* pointer) {
  return pointer;
}

template <class T>
std::vector<T> random_values(int count, std::uint32_t below) {
  std::mt19937 random(17);
  std::vector<T> values(static_cast<std::size_t>(count));
  for (T& value : values) value = static_cast<T>(random() % below);
  return values;
}

}  // namespace

TEST_SUITE("full") {
  TEST_CASE("CUB over the whole device: reductions, scans, selections") {
    Library cub(compile_library("cub_device.cu", "80"));
    if (cub.missing()) return;
    // One tile; a few; so many that blocks look back over several others, on one host thread and on two.
    for (const auto& [n, threads] : {std::pair{1000, 1}, {30000, 1}, {100003, 1}, {100003, 2}}) {
      CAPTURE(n);
      CAPTURE(threads);
      cub.host_threads = threads;
      std::vector<int> x = random_values<int>(n, 1000), y(x.size()), one(1), count(1);
      std::vector<float> f(x.begin(), x.end()), most(1), prefix(f.size());
      const int* xp = cub.input(x);
      const float* fp = cub.input(f);
      cub.call("device_reduce", xp, cub.output(one), n);
      CHECK(one[0] == std::accumulate(x.begin(), x.end(), 0));
      cub.call("device_max", fp, cub.output(most), n);
      CHECK(most[0] == *std::max_element(f.begin(), f.end()));
      std::vector<int> expected(x.size());
      std::partial_sum(x.begin(), x.end(), expected.begin());
      cub.call("device_inclusive_scan", xp, cub.output(y), n);
      CHECK(y == expected);
      cub.call("device_exclusive_scan", fp, cub.output(prefix), n);
      std::vector<double> exact(f.size());
      std::exclusive_scan(f.begin(), f.end(), exact.begin(), 0.0);
      for (std::size_t i = 0; i < exact.size(); ++i) REQUIRE(prefix[i] == doctest::Approx(exact[i]).epsilon(1e-5));
      std::vector<int> kept(x.size());
      cub.call("device_select_if", xp, cub.output(kept), cub.output(count), n);
      std::vector<int> odd;
      std::copy_if(x.begin(), x.end(), std::back_inserter(odd), [](int value) { return value % 2 != 0; });
      kept.resize(static_cast<std::size_t>(count[0]));
      CHECK(kept == odd);
      std::vector<int> offsets = {0, 3, 3, n / 3, n / 3 + 1, n}, sums(offsets.size() - 1);
      cub.call("device_segmented_reduce", xp, cub.output(sums), 5, const_pointer(cub.input(offsets)));
      for (std::size_t i = 0; i < sums.size(); ++i) {
        CHECK(sums[i] == std::accumulate(x.begin() + offsets[i], x.begin() + offsets[i + 1], 0));
      }
    }
  }

  TEST_CASE("CUB over the whole device: sorts, runs, histograms") {
    Library cub(compile_library("cub_device_sort.cu", "80"));
    if (cub.missing()) return;
    for (int n : {700, 40000}) {
      CAPTURE(n);
      std::vector<unsigned> keys = random_values<unsigned>(n, 0xffffffffu), sorted(keys.size());
      std::vector<unsigned> expected = keys;
      std::sort(expected.begin(), expected.end());
      cub.call("device_radix_sort", const_pointer(cub.input(keys)), cub.output(sorted), n);
      CHECK(sorted == expected);
      std::vector<unsigned> in_place = keys;
      cub.call("device_merge_sort", cub.input(in_place), n);
      CHECK(in_place == expected);
      std::vector<int> x = random_values<int>(n, 3), values(x.size()), lengths(x.size()), count(1);
      cub.call("device_run_lengths", const_pointer(cub.input(x)), cub.output(values), cub.output(lengths),
               cub.output(count), n);
      std::vector<int> run_values, run_lengths;
      for (std::size_t i = 0; i < x.size(); ++i) {
        if (i == 0 || x[i] != x[i - 1]) {
          run_values.push_back(x[i]);
          run_lengths.push_back(0);
        }
        ++run_lengths.back();
      }
      values.resize(static_cast<std::size_t>(count[0]));
      lengths.resize(static_cast<std::size_t>(count[0]));
      CHECK(values == run_values);
      CHECK(lengths == run_lengths);
      std::vector<unsigned char> letters = random_values<unsigned char>(n, 256);
      std::vector<int> bins(16);
      cub.call("device_histogram", const_pointer(cub.input(letters)), cub.output(bins), n);
      for (int i = 0; i < 16; ++i) {
        CHECK(bins[i] == std::count_if(letters.begin(), letters.end(), [i](int c) { return c / 16 == i; }));
      }
    }
  }
}
