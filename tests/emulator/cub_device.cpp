// CUB's device-wide algorithms, launched by CUB's own host code: kernels/cub_device*.cu become a shared object whose
// CUDA runtime (kernels/emulated_runtime.cu) hands every launch to the emulator. The look-back scans spin on what
// other blocks write, so they also test that waiting blocks let the others run.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <random>

#include "emulator/compile.h"
#include "emulator/harness.h"
#include "emulator/kernels/emulated_runtime.h"

using namespace fusec::emulator;
using namespace fusec::emulator::testing;

namespace {

// A shared object with its PTX, and a device of its own.
class Library {
 public:
  explicit Library(const char* source) : compiled_(compile_library(source, "80")) {
    if (!compiled_) return;
    module_ = std::make_unique<Module>(compiled_->ptx, source);
    handle_ = dlopen(compiled_->path.c_str(), RTLD_NOW | RTLD_LOCAL);
    const std::string why = handle_ == nullptr ? dlerror() : "";
    INFO(why);
    REQUIRE(handle_ != nullptr);
    device_ = {.owner = this, .allocate = allocate, .fill = fill, .copy = copy, .launch = launch};
    find<void(const EmulatedDevice*)>("use_emulated_device")(&device_);
  }
  ~Library() {
    if (handle_ != nullptr) dlclose(handle_);
  }
  bool missing() const { return handle_ == nullptr; }

  template <class T>
  T* input(std::vector<T>& values) {
    return static_cast<T*>(add(std::as_writable_bytes(std::span(values)), true));
  }
  template <class T>
  T* output(std::vector<T>& values) {
    return static_cast<T*>(add(std::as_writable_bytes(std::span(values)), false));
  }

  template <class... Arguments>
  void call(const char* function, Arguments... arguments) {
    CAPTURE(function);
    launches_ = 0;
    const int status = find<int(Arguments...)>(function)(arguments...);
    CHECK(status == 0);
    CHECK(launches_ > 0);
  }

  int host_threads = 1;

 private:
  void* add(std::span<std::byte> bytes, bool initialized) {
    const Memory::Id id = memory_.add({.name = "x", .bytes = bytes, .initialized = initialized});
    buffers_.push_back(id);
    return reinterpret_cast<void*>(memory_.address(id));
  }
  template <class Function>
  Function* find(const char* name) const {
    void* found = dlsym(handle_, name);
    REQUIRE(found != nullptr);
    return reinterpret_cast<Function*>(found);
  }

  static unsigned long long allocate(void* owner, std::size_t bytes) {
    Library& library = *static_cast<Library*>(owner);
    std::vector<std::byte>& block = library.allocations_.emplace_back(bytes);
    library.buffers_.push_back(library.memory_.add({.name = "temporary", .bytes = block, .initialized = false}));
    return library.memory_.address(library.buffers_.back());
  }

  // Bytes of the buffer that holds `address`; they count as written from now on.
  std::byte* written(unsigned long long address, std::size_t bytes) {
    for (Memory::Id id : buffers_) {
      const std::uint64_t begin = memory_.address(id);
      const std::span<std::byte> all = memory_.buffer(id).bytes;
      if (address < begin || address + bytes > begin + all.size()) continue;
      memory_.mark_written(id, address - begin, bytes);
      return all.data() + (address - begin);
    }
    FAIL("an address outside every buffer");
    return nullptr;
  }
  static void fill(void* owner, unsigned long long address, int value, std::size_t bytes) {
    std::memset(static_cast<Library*>(owner)->written(address, bytes), value, bytes);
  }
  static void copy(void* owner, unsigned long long to, unsigned long long from, std::size_t bytes) {
    Library& library = *static_cast<Library*>(owner);
    std::memcpy(library.written(to, bytes), library.written(from, bytes), bytes);
  }

  static int launch(void* owner, const char* kernel, const unsigned grid[3], const unsigned block[3],
                    std::size_t dynamic_shared, void** arguments) {
    Library& library = *static_cast<Library*>(owner);
    Launch made{.kernel = kernel,
                .grid = {grid[0], grid[1], grid[2]},
                .block = {block[0], block[1], block[2]},
                .dynamic_shared_bytes = static_cast<std::uint32_t>(dynamic_shared)};
    const KernelInfo info = library.module_->kernel(kernel);
    for (std::size_t i = 0; i < info.parameter_bytes.size(); ++i) {
      const auto* from = static_cast<const std::byte*>(arguments[i]);
      made.arguments.emplace_back(from, from + info.parameter_bytes[i]);
    }
    const Report report = run(*library.module_, made, library.memory_, {.threads = library.host_threads});
    ++library.launches_;
    INFO(describe(report));
    CHECK(report.findings.empty());
    return 0;
  }

  std::optional<CompiledLibrary> compiled_;
  std::unique_ptr<Module> module_;
  void* handle_ = nullptr;
  EmulatedDevice device_{};
  Memory memory_;
  std::vector<Memory::Id> buffers_;
  std::deque<std::vector<std::byte>> allocations_;
  int launches_ = 0;
};

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
    Library cub("cub_device.cu");
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
    Library cub("cub_device_sort.cu");
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
