// Kernels compiled by nvcc when the test runs, against the same computation on the host. Skipped where there is no
// nvcc.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <random>

#include "emulator/compile.h"
#include "emulator/harness.h"

using namespace fusec::emulator;
using namespace fusec::emulator::testing;

namespace {

const Module* compiled_kernels() {
  return compiled_module("kernels.cu", "sm_80");
}

template <class T>
std::span<std::byte> bytes_of(std::vector<T>& values) {
  return std::as_writable_bytes(std::span(values));
}

template <class T>
Memory::Id input(Memory& memory, const char* name, std::vector<T>& values) {
  return memory.add({.name = name, .bytes = bytes_of(values), .writable = false});
}
template <class T>
Memory::Id output(Memory& memory, const char* name, std::vector<T>& values) {
  return memory.add({.name = name, .bytes = bytes_of(values), .initialized = false});
}

std::vector<float> random_floats(std::size_t count, float low, float high) {
  std::mt19937 random(11);
  std::uniform_real_distribution<float> uniform(low, high);
  std::vector<float> values(count);
  for (float& value : values) value = uniform(random);
  return values;
}

void check_clean(const Report& report) {
  INFO(describe(report));
  CHECK(report.findings.empty());
}

}  // namespace

TEST_SUITE("nvcc") {
  TEST_CASE("mathematical functions") {
    const Module* module = compiled_kernels();
    if (module == nullptr) return;
    const int n = 200;
    std::vector<float> x = random_floats(n, -4, 4), y(n * 12);
    Memory memory;
    const auto xi = input(memory, "x", x), yi = output(memory, "y", y);
    check_clean(run(*module,
                    {.kernel = "math",
                     .grid = {4},
                     .block = {64},
                     .arguments = {pointer_argument(memory, xi), pointer_argument(memory, yi), scalar_argument(n)}},
                    memory));
    const float table[4] = {1, 2, 3, 4};
    const int primes[8] = {2, 3, 5, 7, 11, 13, 17, 19};
    for (int i = 0; i < n; ++i) {
      const float v = x[i];
      const std::array<double, 12> expected = {std::sin(double(v * 1000.0f)),
                                               std::exp(double(v)),
                                               std::tanh(double(v)),
                                               std::erf(double(v)),
                                               std::log(std::fabs(v) + 0.5),
                                               std::pow(std::fabs(v) + 0.1f, 1.7),
                                               1 / std::sqrt(std::fabs(v) + 1.0),
                                               v / 3.0,
                                               std::sin(double(v)),
                                               std::fmod(v * 100.0f, 7.0f),
                                               std::exp(double(v)),
                                               table[i & 3] + primes[i & 7]};
      for (int j = 0; j < 12; ++j) {
        CAPTURE(i);
        CAPTURE(j);
        CHECK(y[i * 12 + j] == doctest::Approx(expected[j]).epsilon(1e-5));
      }
    }
  }

  TEST_CASE("softmax, on several host threads") {
    const Module* module = compiled_kernels();
    if (module == nullptr) return;
    const int rows = 16, columns = 300;
    std::vector<float> x = random_floats(rows * columns, -4, 4), y(x.size());
    Memory memory;
    const auto xi = input(memory, "x", x), yi = output(memory, "y", y);
    check_clean(
        run(*module,
            {.kernel = "softmax",
             .grid = {rows},
             .block = {128},
             .arguments = {pointer_argument(memory, xi), pointer_argument(memory, yi), scalar_argument(columns)}},
            memory, {.threads = 3}));
    for (int r = 0; r < rows; ++r) {
      double sum = 0;
      for (int c = 0; c < columns; ++c) sum += std::exp(double(x[r * columns + c]));
      for (int c = 0; c < columns; ++c)
        CHECK(y[r * columns + c] == doctest::Approx(std::exp(double(x[r * columns + c])) / sum).epsilon(1e-5));
    }
  }

  TEST_CASE("integers, switches and function calls") {
    const Module* module = compiled_kernels();
    if (module == nullptr) return;
    const int n = 300;
    std::vector<int> x(n);
    for (int i = 0; i < n; ++i) x[i] = i * 37 + 5;
    std::vector<long long> y(n);
    Memory memory;
    const auto xi = input(memory, "x", x), yi = output(memory, "y", y);
    check_clean(run(*module,
                    {.kernel = "integers",
                     .grid = {3},
                     .block = {128},
                     .arguments = {pointer_argument(memory, xi), pointer_argument(memory, yi), scalar_argument(n)}},
                    memory));
    const auto collatz = [](long long v) {
      long long steps = 0;
      for (; v != 1; ++steps) v = v % 2 == 0 ? v / 2 : 3 * v + 1;
      return steps;
    };
    for (int i = 0; i < n; ++i) {
      const long long v = x[i];
      long long expected = 0;
      switch (v % 7) {
        case 0:
          expected = collatz(v + 1);
          break;
        case 1:
          expected = v * v / 3;
          break;
        case 2:
          expected = __builtin_popcountll(v) + __builtin_clzll(v);
          break;
        case 3: {
          unsigned reversed = 0;
          for (int b = 0; b < 32; ++b) reversed |= (static_cast<unsigned>(v) >> b & 1) << (31 - b);
          expected = reversed;
          break;
        }
        case 4:
          expected = v << 3 ^ v >> 2;
          break;
        case 5:
          expected = v * 123456789 >> 32;
          break;
        default:
          expected = (v % 11) * 1000 + collatz(v + 2);
      }
      CAPTURE(i);
      CHECK(y[i] == expected);
    }
  }

  TEST_CASE("arrays in local memory") {
    const Module* module = compiled_kernels();
    if (module == nullptr) return;
    const int n = 50;
    std::vector<int> x(n), y(64);
    for (int i = 0; i < n; ++i) x[i] = i * i;
    Memory memory;
    const auto xi = input(memory, "x", x), yi = output(memory, "y", y);
    check_clean(run(*module,
                    {.kernel = "local_array",
                     .block = {64},
                     .arguments = {pointer_argument(memory, xi), pointer_argument(memory, yi), scalar_argument(n)}},
                    memory));
    for (int i = 0; i < 64; ++i) {
      int bins[16] = {}, best = 0;
      for (int j = 0; j < n; ++j) bins[(x[j] + i) & 15] += j;
      for (int bin : bins) best = std::max(best, bin);
      CHECK(y[i] == best + bins[i & 15]);
    }
  }

  TEST_CASE("packed halves and bfloats") {
    const Module* module = compiled_kernels();
    if (module == nullptr) return;
    const int n = 128;
    std::vector<std::uint16_t> x(n), b(n), y(n), z(n);
    for (int i = 0; i < n; ++i) {
      x[i] = static_cast<std::uint16_t>(0x3c00 + i);         // 1 + i / 1024
      b[i] = static_cast<std::uint16_t>(0x3f80 + (i % 64));  // 1 + i / 128
    }
    Memory memory;
    const auto xi = input(memory, "x", x), bi = input(memory, "b", b), yi = output(memory, "y", y),
               zi = output(memory, "z", z);
    check_clean(run(*module,
                    {.kernel = "halves",
                     .block = {64},
                     .arguments = {pointer_argument(memory, xi), pointer_argument(memory, bi),
                                   pointer_argument(memory, yi), pointer_argument(memory, zi), scalar_argument(n)}},
                    memory));
    for (int i = 0; i < n; ++i) {
      const double v = 1 + i / 1024.0, sum = std::nearbyint((v + 0.5) * 1024) / 1024;
      const double exact = v * v + sum;  // between 2 and 4: steps of 2^-9
      const double found = (1024 + (y[i] & 0x3ff)) * std::ldexp(1.0, (y[i] >> 10) - 25);
      CHECK(found == std::nearbyint(exact * 512) / 512);
      const double w = 1 + (i % 64) / 128.0;
      const double found_bf = static_cast<double>(float_of(static_cast<std::uint32_t>(z[i]) << 16));
      CHECK(found_bf == doctest::Approx(w * w + w * 0.5).epsilon(0.005));
    }
  }

  TEST_CASE("blocks that wait for each other, and a device variable that lasts") {
    const Module* module = compiled_kernels();
    if (module == nullptr) return;
    const int n = 1000, blocks = 8;
    std::vector<float> x(n, 0.5f), partial(blocks), y(1);
    Memory memory;
    const auto xi = input(memory, "x", x), pi = output(memory, "partial", partial), yi = output(memory, "y", y);
    for (int threads : {1, 4}) {
      y[0] = 0;
      check_clean(run(*module,
                      {.kernel = "grid_sum",
                       .grid = {blocks},
                       .block = {64},
                       .arguments = {pointer_argument(memory, xi), pointer_argument(memory, pi),
                                     pointer_argument(memory, yi), scalar_argument(n)}},
                      memory, {.threads = threads}));
      CHECK(y[0] == 500);
    }
  }

  TEST_CASE("locks taken by lanes of one warp") {
    const Module* module = compiled_kernels();
    if (module == nullptr) return;
    for (const char* kernel : {"spin_lock", "spin_wait"}) {
      CAPTURE(kernel);
      std::vector<int> lock(1), counter(1);
      Memory memory;
      const auto li = memory.add({.name = "lock", .bytes = bytes_of(lock)}),
                 ci = memory.add({.name = "counter", .bytes = bytes_of(counter)});
      check_clean(run(*module,
                      {.kernel = kernel,
                       .grid = {2},
                       .block = {64},
                       .arguments = {pointer_argument(memory, li), pointer_argument(memory, ci)}},
                      memory));
      CHECK(counter[0] == 128);
    }
  }

  TEST_CASE("transpose through shared memory without bank conflicts") {
    const Module* module = compiled_kernels();
    if (module == nullptr) return;
    const int rows = 70, columns = 45;
    std::vector<float> x = random_floats(rows * columns, -1, 1), y(x.size());
    Memory memory;
    const auto xi = input(memory, "x", x), yi = output(memory, "y", y);
    const Report report = run(*module,
                              {.kernel = "transpose",
                               .grid = {2, 3},
                               .block = {32, 8},
                               .arguments = {pointer_argument(memory, xi), pointer_argument(memory, yi),
                                             scalar_argument(rows), scalar_argument(columns)}},
                              memory);
    check_clean(report);
    CHECK(report.counters.shared_bank_conflicts == 0);
    CHECK(!memory.first_unwritten(yi));
    for (int r = 0; r < rows; ++r) {
      for (int c = 0; c < columns; ++c) CHECK(y[c * rows + r] == x[r * columns + c]);
    }
  }

  TEST_CASE("a pipelined matrix product on tensor cores") {
    const Module* module = compiled_kernels();
    if (module == nullptr) return;
    const int m = 32, n = 24, k = 64;
    std::mt19937 random(5);
    std::vector<std::uint16_t> a(m * k), b(k * n);
    std::vector<float> c(m * n);
    const auto small = [&](std::uint16_t& half) {  // -2 ... 2 in halves
      const int value = static_cast<int>(random() % 9) - 4;
      const std::uint16_t magnitudes[5] = {0, 0x3800, 0x3c00, 0x3e00, 0x4000};
      half = static_cast<std::uint16_t>(magnitudes[std::abs(value)] | (value < 0 ? 0x8000 : 0));
      return value * 0.5;
    };
    std::vector<double> av, bv;
    for (std::uint16_t& value : a) av.push_back(small(value));
    for (std::uint16_t& value : b) bv.push_back(small(value));
    Memory memory;
    const auto ai = input(memory, "a", a), bi = input(memory, "b", b), ci = output(memory, "c", c);
    const Report report =
        run(*module,
            {.kernel = "gemm",
             .grid = {n / 8, m / 16},
             .block = {32},
             .arguments = {pointer_argument(memory, ai), pointer_argument(memory, bi), pointer_argument(memory, ci),
                           scalar_argument(m), scalar_argument(n), scalar_argument(k)}},
            memory);
    check_clean(report);
    CHECK(report.counters.tensor_multiply_adds == static_cast<std::uint64_t>(m) * n * k);
    for (int i = 0; i < m; ++i) {
      for (int j = 0; j < n; ++j) {
        double sum = 0;
        for (int p = 0; p < k; ++p) sum += av[i * k + p] * bv[p * n + j];
        CHECK(c[i * n + j] == sum);
      }
    }
  }
}
