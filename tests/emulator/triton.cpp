// Triton's kernels (tests/emulator/kernels/triton_kernels.py) for sm_80 and sm_90 on the emulator, against the host.
// Skipped where python3 has no Triton.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <random>

#include "emulator/harness.h"
#include "runtime/emulator/numerics.h"

using namespace fusec::emulator;

namespace {

constexpr std::uint32_t kShared = 98304;  // enough for all of them

struct Folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("fusec_triton_" + std::to_string(getpid()));
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
};

class Kernel {
 public:
  Kernel(const Folder& folder, const std::string& file, std::string name)
      : name_(std::move(name)), text_(folder.path / file) {}

  template <class T>
  void input(std::vector<T>& values) {
    add(values, true);
  }
  template <class T>
  void output(std::vector<T>& values) {
    add(values, false);
  }
  template <class T>
  void updated(std::vector<T>& values) {
    add(values, true, true);
  }
  template <class T>
  void scalar(T value) {
    arguments_.push_back(scalar_argument(value));
  }

  void run(std::uint32_t blocks) {
    std::ifstream file(text_);
    const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const Module module(text, text_.filename().string());
    // Scratch pointers that Triton appends: tensor maps are made in the first.
    while (arguments_.size() < module.kernel(name_).parameter_bytes.size()) output(scratch_.emplace_back(16384));
    const Launch launch{
        .kernel = name_, .grid = {blocks}, .block = {128}, .dynamic_shared_bytes = kShared, .arguments = arguments_};
    const Report report = fusec::emulator::run(module, launch, memory_);
    INFO(describe(report));
    CHECK(report.findings.empty());
  }

 private:
  template <class T>
  void add(std::vector<T>& values, bool is_input, bool is_updated = false) {
    const auto id = memory_.add({.name = std::to_string(arguments_.size()),
                                 .bytes = std::as_writable_bytes(std::span(values)),
                                 .initialized = is_input,
                                 .writable = !is_input || is_updated});
    arguments_.push_back(pointer_argument(memory_, id));
  }

  std::string name_;
  std::filesystem::path text_;
  Memory memory_;
  std::vector<Argument> arguments_;
  std::deque<std::vector<std::uint32_t>> scratch_;
};

std::mt19937 random_engine(17);
std::vector<float> random_floats(int count) {
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = uniform(random_engine);
  return values;
}
std::vector<std::uint16_t> random_halves(int count) {
  std::vector<std::uint16_t> values;
  for (float value : random_floats(count)) values.push_back(float_to_half(value));
  return values;
}
double real(std::uint16_t half) {
  return static_cast<double>(half_to_float(half));
}

void check_softmax(const Folder& folder, int arch) {
  const int rows = 5, n = 400;
  std::vector<float> x = random_floats(rows * n), y(x.size());
  Kernel kernel(folder, fmt::format("softmax_{}.ptx", arch), "softmax");
  kernel.input(x);
  kernel.output(y);
  kernel.scalar(n);
  kernel.run(rows);
  for (int r = 0; r < rows; ++r) {
    double sum = 0;
    for (int i = 0; i < n; ++i) sum += std::exp(double(x[r * n + i]));
    for (int i = 0; i < n; ++i)
      CHECK(y[r * n + i] == doctest::Approx(std::exp(double(x[r * n + i])) / sum).epsilon(1e-5));
  }
}

void check_layernorm(const Folder& folder, int arch) {
  const int rows = 5, n = 400;
  std::vector<float> x = random_floats(rows * n), w = random_floats(n), b = random_floats(n), y(x.size());
  Kernel kernel(folder, fmt::format("layernorm_{}.ptx", arch), "layernorm");
  kernel.input(x);
  kernel.input(w);
  kernel.input(b);
  kernel.output(y);
  kernel.scalar(n);
  kernel.scalar(1e-5f);
  kernel.run(rows);
  for (int r = 0; r < rows; ++r) {
    double mean = 0, variance = 0;
    for (int i = 0; i < n; ++i) mean += x[r * n + i] / double(n);
    for (int i = 0; i < n; ++i) variance += (x[r * n + i] - mean) * (x[r * n + i] - mean) / n;
    for (int i = 0; i < n; ++i)
      CHECK(std::fabs(y[r * n + i] - ((x[r * n + i] - mean) / std::sqrt(variance + 1e-5) * w[i] + b[i])) < 1e-5);
  }
}

void check_matmul(const Folder& folder, int arch, int stages) {
  const int m = 128, n = 64, k = 128;
  std::vector<std::uint16_t> a = random_halves(m * k), b = random_halves(k * n);
  std::vector<float> c(m * n);
  Kernel kernel(folder, fmt::format("matmul{}_{}.ptx", stages, arch), "matmul");
  kernel.input(a);
  kernel.input(b);
  kernel.output(c);
  for (int size : {m, n, k}) kernel.scalar(size);
  kernel.run(2);
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int p = 0; p < k; ++p) sum += real(a[i * k + p]) * real(b[p * n + j]);
      CHECK(std::fabs(c[i * n + j] - sum) < 1e-4);
    }
  }
}

// By tensor descriptors that the kernel makes itself, and wgmma.
void check_descriptors(const Folder& folder) {
  const int m = 128, n = 64, k = 192;
  std::vector<std::uint16_t> a = random_halves(m * k), b = random_halves(n * k);
  std::vector<float> c(m * n);
  Kernel kernel(folder, "descriptors_90.ptx", "matmul_descriptors");
  kernel.input(a);
  kernel.input(b);
  kernel.output(c);
  for (int size : {m, n, k}) kernel.scalar(size);
  kernel.run(2);
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int p = 0; p < k; ++p) sum += real(a[i * k + p]) * real(b[j * k + p]);
      REQUIRE(std::fabs(c[i * n + j] - sum) < 1e-3);
    }
  }
}

void check_counts(const Folder& folder, int arch) {
  const int n = 1000;
  std::vector<int> x(n), bins(16), total(1);
  for (int& value : x) value = static_cast<int>(random_engine() % 16);
  Kernel kernel(folder, fmt::format("counts_{}.ptx", arch), "counts");
  kernel.input(x);
  kernel.updated(bins);
  kernel.updated(total);
  kernel.scalar(n);
  kernel.run(4);
  for (int i = 0; i < 16; ++i) CHECK(bins[i] == std::count(x.begin(), x.end(), i));
  CHECK(total[0] == std::accumulate(x.begin(), x.end(), 0));
}

void check_sorted(const Folder& folder, int arch) {
  const int rows = 3, n = 256;
  std::vector<float> x = random_floats(rows * n), y(x.size()), sums(x.size());
  Kernel kernel(folder, fmt::format("sorted_{}.ptx", arch), "sorted_rows");
  kernel.input(x);
  kernel.output(y);
  kernel.output(sums);
  kernel.run(rows);
  for (int r = 0; r < rows; ++r) {
    double sum = 0;
    for (int i = 0; i < n; ++i) {
      sum += static_cast<double>(x[r * n + i]);
      REQUIRE(std::fabs(sums[r * n + i] - sum) < 1e-4);
    }
    std::sort(x.begin() + r * n, x.begin() + (r + 1) * n);
  }
  CHECK(y == x);
}

void check_attention(const Folder& folder, int arch) {
  const int t = 128, d = 64;
  std::vector<std::uint16_t> q = random_halves(t * d), k = random_halves(t * d), v = random_halves(t * d);
  std::vector<float> o(t * d);
  Kernel kernel(folder, fmt::format("attention_{}.ptx", arch), "attention");
  kernel.input(q);
  kernel.input(k);
  kernel.input(v);
  kernel.output(o);
  kernel.scalar(t);
  kernel.scalar(0.125f);
  kernel.run(2);
  for (int i = 0; i < t; ++i) {
    std::vector<double> p(t);
    double sum = 0;
    for (int j = 0; j < t; ++j) {
      double score = 0;
      for (int x = 0; x < d; ++x) score += real(q[i * d + x]) * real(k[j * d + x]);
      sum += p[j] = std::exp(score * 0.125);
    }
    for (int x = 0; x < d; ++x) {
      double expected = 0;
      for (int j = 0; j < t; ++j) expected += p[j] * real(v[j * d + x]) / sum;
      CHECK(std::fabs(o[i * d + x] - expected) < 1e-3);
    }
  }
}

}  // namespace

TEST_SUITE("full") {
  TEST_CASE("Triton") {
    const Folder folder;
    const std::string command =
        fmt::format("python3 {}/emulator/kernels/triton_kernels.py {}", FUSEC_TESTS_DIR, folder.path.string());
    const int status = std::system(command.c_str());
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
      MESSAGE("skipped: Triton is missing");
      return;
    }
    REQUIRE(status == 0);
    for (int arch : {80, 90}) {
      CAPTURE(arch);
      check_softmax(folder, arch);
      check_layernorm(folder, arch);
      check_matmul(folder, arch, 1);
      check_matmul(folder, arch, 3);
      check_attention(folder, arch);
      check_counts(folder, arch);
      check_sorted(folder, arch);
    }
    check_descriptors(folder);
  }
}
