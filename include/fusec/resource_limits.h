// How much time, memory and input one call of the library, or one run of a program, may take.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace fusec {

struct ResourceLimits {
  double seconds = 0;             // wall time; 0: no limit
  std::int64_t memory_bytes = 0;  // resident memory that the call adds to the process; 0: no limit
  // Size of one text file or pipe that is read whole: a model, patterns, a plan, a target, a tuning database, PTX, the
  // header of a safetensors file. 0: no limit.
  std::int64_t file_bytes = std::int64_t{512} << 20;
  // Limits on a model's sizes that differ from their defaults, by name (docs/limits.md): {"results", 100000}.
  std::map<std::string, std::int64_t> sizes;
};

}  // namespace fusec
