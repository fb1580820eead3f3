// What is compiled for: the architecture and the sizes and rates that schedules and the cost model need. A user's own
// comes from a file (schedule/target/target_file.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fusec {

struct Target {
  std::string name = "sm_80";          // for --arch and --target: the architecture, or a chip beside the usual one
  std::string arch = "sm_80";          // as NVRTC has it: "sm_80", "sm_90a"
  int compute_capability = 80;         // 90 for sm_90a
  bool architecture_specific = false;  // the "a" of sm_90a: wgmma, TMA multicast, setmaxnreg
  std::string chip = "A100";
  int multiprocessors = 108;
  int shared_bytes_per_block = 163 * 1024;  // with opt-in
  int registers_per_multiprocessor = 65536;
  int max_threads_per_multiprocessor = 2048;
  std::int64_t l2_bytes = 40ll << 20;
  double bandwidth = 1.555e12;    // of device memory, bytes a second
  double float32_rate = 19.5e12;  // operations a second, off the tensor cores; a multiply-add is two
  double float64_rate = 9.7e12;
  double special_rate = 2.4375e12;  // reciprocals, square roots, exponentials, logarithms a second
  double float16_rate = 312e12;     // dense, tensor cores; bfloat16 as well
  double float8_rate = 624e12;      // or int8
  double mma_sync_rate = 1;         // of these, what a warp's mma.sync has; the rates are wgmma's where there is one
  double latency_seconds = 331e-9;  // of a load from device memory when little else is going on
  double launch_seconds = 3e-6;     // what a kernel costs before it does anything
  int strip_threads = 1024;         // of a block of columns at most: beside others half, so that these have registers
  bool allows_stream_k = true;      // of products (schedule/gemm/stream_k.h): not of kernels that stand in one launch
  std::string source;               // where the figures are from
};

// Of a kernel, for any CUDA that may compile the emitted file; and what CUDA 12.1 and later allow, which only kernels
// of many parts side by side make use of: a model's optimizer is to be one launch.
inline constexpr int kMaxParameterBytes = 4096;
inline constexpr int kMaxLargeParameterBytes = 32764;

inline constexpr int kSectorBytes = 32;  // the least that device memory and its caches move
inline constexpr int kVectorBytes = 16;  // the widest access of a thread
inline constexpr int kMultiprocessorRegisters = 65536;
inline constexpr int kWarpLanes = 32;  // lanes, and banks of shared memory

// The targets this build knows; the first is the default.
const std::vector<Target>& known_targets();

// "sm_90a", "sm_80", "h200", ...: throws Error(kUsage) for what is no name of these and no architecture that NVRTC
// would know.
Target target_for(std::string_view arch);

}  // namespace fusec
