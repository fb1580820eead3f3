// The compilation target: its architecture, and the sizes and rates that schedules and the cost model use. A user's own
// target comes from a file (schedule/target/target_file.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fusec {

struct Target {
  std::string name = "sm_80";          // for --arch and --target: the architecture, or the name of a less common chip
  std::string arch = "sm_80";          // NVRTC's name: "sm_80", "sm_90a"
  int compute_capability = 80;         // 90 for sm_90a
  bool architecture_specific = false;  // the suffix "a" of sm_90a: wgmma, TMA multicast, setmaxnreg
  std::string chip = "A100";
  int multiprocessors = 108;
  int shared_bytes_per_block = 163 * 1024;  // with opt-in
  int registers_per_multiprocessor = 65536;
  int max_threads_per_multiprocessor = 2048;
  std::int64_t l2_bytes = 40ll << 20;
  double bandwidth = 1.555e12;    // of device memory, bytes a second
  double float32_rate = 19.5e12;  // operations a second outside tensor cores; a multiply-add is two
  double float64_rate = 9.7e12;
  double special_rate = 2.4375e12;  // reciprocals, square roots, exponentials, logarithms a second
  double float16_rate = 312e12;     // dense, on tensor cores; also for bfloat16
  double float8_rate = 624e12;      // also for int8
  // Share of these rates that a warp's mma.sync reaches; the rates are wgmma's where it exists.
  double mma_sync_rate = 1;
  double latency_seconds = 331e-9;  // of a load from device memory when the device is nearly idle
  double launch_seconds = 3e-6;     // seconds before a kernel does anything
  // Most threads of a block of columns; halved in a shared launch, for more registers per thread.
  int strip_threads = 1024;
  std::string source;  // source of the figures

  bool operator==(const Target&) const = default;
};

// Bytes of parameters per kernel: for any CUDA that may compile the emitted file, and from CUDA 12.1 on. Only launches
// of many kernels use the larger limit, so that a model's optimizer is one launch.
inline constexpr int kMaxParameterBytes = 4096;
inline constexpr int kMaxLargeParameterBytes = 32764;

inline constexpr int kSectorBytes = 32;  // least unit of a transfer from device memory
inline constexpr int kVectorBytes = 16;  // widest access of a thread
inline constexpr int kMultiprocessorRegisters = 65536;
inline constexpr int kWarpLanes = 32;  // lanes of a warp, and banks of shared memory

// Returns the targets this build knows. The first is the default.
const std::vector<Target>& known_targets();

// Returns the target for "sm_90a", "sm_80", "h200", ... Throws Error(kUsage) unless the name is a known target or an
// architecture that NVRTC knows.
Target target_for(std::string_view arch);

}  // namespace fusec
