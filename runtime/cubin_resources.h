// Registers, stack and shared memory that ptxas gave each kernel, read from a cubin (an ELF file).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace fusec {

struct KernelResources {
  int registers = 0;                     // per thread
  std::int64_t stack_bytes = 0;          // per thread: local arrays and spilled registers
  std::int64_t static_shared_bytes = 0;  // per block
};

// The resources by kernel name. Throws Error(kInput) for bytes that are not a valid cubin.
std::map<std::string, KernelResources> cubin_resources(std::string_view cubin);

}  // namespace fusec
