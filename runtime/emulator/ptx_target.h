// Limits that a module's .target and .version set: shared memory, parameters, instructions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fusec::emulator {

struct PtxTarget {
  int capability = 0;     // 90 for sm_90a; 0: unknown, nothing is refused
  bool specific = false;  // sm_90a, sm_100f: has instructions that later chips lack
  int version = 0;        // PTX version, 81 for 8.1; 0: unknown
};

PtxTarget parse_ptx_target(std::string_view target, std::string_view version);

inline constexpr std::uint64_t kMaxStaticShared = 48 * 1024;  // bytes; more must be dynamic
std::uint64_t max_shared_bytes(const PtxTarget& target);      // per block, static and dynamic
std::uint64_t max_parameter_bytes(const PtxTarget& target);   // per kernel
// The .target that an instruction needs, "sm_90 or newer", if `target` does not have it; else empty.
std::string_view needed_target(const PtxTarget& target, std::string_view opcode);

}  // namespace fusec::emulator
