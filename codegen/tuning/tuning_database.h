// Measured choices: for a kernel (by what it computes on which shapes, not by its name) the way its schedule goes that
// took the least time. `fusec-run --tune` writes the file, --tuning-db= reads it:
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
  std::string arch;    // as NVRTC has it
  std::string key;     // content_key of its signature (analysis/kernel/kernel_signature.h) and of the symbols' hints
  std::string kernel;  // its name when it was measured; for readers
  std::string device;  // what it was measured on; for readers
  std::string choice;
  std::vector<std::pair<std::string, double>> microseconds;  // of every way, the least first
};

class TuningDatabase {
 public:
  // Null where the kernel was not measured.
  const TunedKernel* find(const std::string& arch, const std::string& key) const;
  // Takes the place of what was there for the same kernel.
  void set(TunedKernel kernel);
  const std::map<std::pair<std::string, std::string>, TunedKernel>& kernels() const { return kernels_; }

 private:
  std::map<std::pair<std::string, std::string>, TunedKernel> kernels_;  // by arch and key
};

// `file` is what messages call the text. Throws Error(kInput).
TuningDatabase read_tuning(std::string_view text, const std::string& file);
std::string write_tuning(const TuningDatabase& database);

}  // namespace fusec
