// What is compiled for: the architecture and the sizes and rates that schedules and the cost model need.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fusec {

struct Target {
  std::string arch = "sm_80";          // as NVRTC has it: "sm_80", "sm_90a"
  int compute_capability = 80;         // 90 for sm_90a
  bool architecture_specific = false;  // the "a" of sm_90a: wgmma, TMA multicast, setmaxnreg
  std::string chip = "A100";
  int multiprocessors = 108;
  int shared_bytes_per_block = 163 * 1024;  // with opt-in
  int registers_per_multiprocessor = 65536;
  int max_threads_per_multiprocessor = 2048;
  std::int64_t l2_bytes = 40ll << 20;
  double bandwidth = 1.555e12;    // bytes a second
  double float32_rate = 19.5e12;  // operations a second, off the tensor cores
  double float16_rate = 312e12;   // dense, tensor cores
  double float8_rate = 624e12;    // or int8
  double launch_seconds = 3e-6;
  std::string source;  // where the figures are from
};

// Of a kernel, for any CUDA that may compile the emitted file; from 12.1 on it would be 32764.
inline constexpr int kMaxParameterBytes = 4096;

// The targets this build knows; the first is the default.
const std::vector<Target>& known_targets();

// "sm_90a", "sm_80", ...: throws Error(kUsage) for what NVRTC would not know.
Target target_for(std::string_view arch);

}  // namespace fusec
