// Collectives of several devices while a module runs. The caller owns the communicators and executes them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace fusec {

// One collective of a call. Elements are contiguous; source and target may be the same memory. The parts of the ranks
// are in the order of the ranks.
struct Collective {
  std::string op;         // "all_reduce", "all_gather" or "reduce_scatter"
  std::string group;      // the name that the model has for it
  std::string reduce_op;  // "sum", "prod", "max", "min" or "avg"; "" of all_gather
  std::string dtype;
  void* source = nullptr;
  std::int64_t source_elements = 0;
  void* target = nullptr;
  std::int64_t target_elements = 0;
};

// Does one collective. On a GPU it enqueues the work on `stream`, that of the launch; on the emulator `stream` is null
// and the addresses are of host memory. An exception ends the call.
using Communicate = std::function<void(const Collective&, void* stream)>;

}  // namespace fusec
