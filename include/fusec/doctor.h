// What this machine offers fusec, and what to do about what is missing: `fusec doctor` and `python -m fusec doctor`.
#pragma once

#include <string>
#include <vector>

#include "fusec/fusec.h"

namespace fusec {

struct Finding {
  enum class State : std::uint8_t {
    kGood,
    kMissing,  // something works without it
    kBroken,   // no model can be compiled
  };
  std::string subject;  // "NVRTC"
  State state = State::kGood;
  std::string found;   // "13.0 in /usr/local/cuda/lib64/libnvrtc.so.13"
  std::string advice;  // what to do; "" where nothing is to be done
};

// Looks at NVRTC, the CUDA driver, GPUs, the compile cache and Graphviz, as compile() with these options would use
// them. Loads libraries; starts the driver. Throws nothing but std::bad_alloc.
std::vector<Finding> examine(const Options& options = {});

// As a table for people, or as JSON: [{"subject", "state", "found", "advice"}].
std::string findings_text(const std::vector<Finding>& findings);
std::string findings_json(const std::vector<Finding>& findings);

// Whether a model can be compiled.
bool can_compile(const std::vector<Finding>& findings);

}  // namespace fusec
