// One launch that both a GPU and the emulator carry out: PTX text, operands in, results out.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace fusec::gpu_test {

// The kernel is `k` and takes two pointers: `in` and `out`, which begins as zeros.
struct TestLaunch {
  std::string ptx;
  std::uint32_t blocks = 1, threads = 32;
  std::vector<std::uint32_t> in;
  std::size_t out_words = 0;
};

class Executor {
 public:
  virtual ~Executor() = default;
  virtual std::string name() const = 0;
  virtual int capability() const = 0;  // 80, 90, ...
  virtual std::vector<std::uint32_t> run(const TestLaunch& launch) = 0;
};

std::unique_ptr<Executor> emulator_executor();
// Null where there is no driver or no device.
std::unique_ptr<Executor> cuda_executor();

}  // namespace fusec::gpu_test
