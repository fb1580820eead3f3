// What ptxas gave each kernel, read from the cubin (an ELF file) that NVRTC made: registers, stack, shared memory.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace fusec {

struct KernelResources {
  int registers = 0;                     // a thread
  std::int64_t stack_bytes = 0;          // a thread: local arrays and spilled registers
  std::int64_t static_shared_bytes = 0;  // a block
};

// By kernel. Throws Error(kInput) for bytes that are no cubin or that contradict themselves.
std::map<std::string, KernelResources> cubin_resources(std::string_view cubin);

}  // namespace fusec
