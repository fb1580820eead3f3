// Measured schedule choices. A kernel is identified by what it computes on which shapes, not by its name; the database
// holds the candidate that took the least time. `fusec-run --tune` writes the file, --tuning-db= reads it:
//
//   {"fusec_tuning": 1, "kernels": [
//     {"arch": "sm_90a", "device": "NVIDIA H200", "kernel": "linear_gelu", "key": "5d0c...", "choice": "128x128 ...",
//      "microseconds": {"128x128 ...": 210.4, "128x256 ...": 223.9}}]}
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fusec {

struct TunedKernel {
  std::string arch;    // NVRTC's name, "sm_90a"
  std::string key;     // content_key of its signature (analysis/kernel/kernel_signature.h) and of the symbols' hints
  std::string kernel;  // its name when measured; for readers
  std::string device;  // the device it was measured on; for readers
  std::string choice;
  std::vector<std::pair<std::string, double>> microseconds;  // of every candidate, fastest first
};

class TuningDatabase {
 public:
  // Null if the kernel was not measured.
  const TunedKernel* find(const std::string& arch, const std::string& key) const;
  // Replaces an existing entry of the same kernel.
  void set(TunedKernel kernel);
  const std::map<std::pair<std::string, std::string>, TunedKernel>& kernels() const { return kernels_; }

 private:
  std::map<std::pair<std::string, std::string>, TunedKernel> kernels_;  // by arch and key
};

// `file` is the file name for messages. Throws Error(kInput).
TuningDatabase read_tuning(std::string_view text, const std::string& file);
std::string write_tuning(const TuningDatabase& database);

}  // namespace fusec
