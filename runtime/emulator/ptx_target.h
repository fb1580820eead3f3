// What a module's .target and .version allow: memory of a block, parameters, instructions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fusec::emulator {

struct PtxTarget {
  int capability = 0;     // 90 of sm_90a; 0: unknown, then nothing is refused because of it
  bool specific = false;  // sm_90a, sm_100f: instructions that later chips do not have
  int version = 0;        // of PTX, 81 for 8.1; 0: unknown
};

PtxTarget parse_ptx_target(std::string_view target, std::string_view version);

inline constexpr std::uint64_t kMaxStaticShared =
    48 * 1024;                                            // what a kernel declares; more must be asked for as dynamic
std::uint64_t max_shared_bytes(const PtxTarget& target);  // of a block, static and dynamic
std::uint64_t max_parameter_bytes(const PtxTarget& target);  // of a kernel
// The .target that an instruction needs where this one is not enough, as "sm_90 or newer"; else empty.
std::string_view needed_target(const PtxTarget& target, std::string_view opcode);

}  // namespace fusec::emulator
