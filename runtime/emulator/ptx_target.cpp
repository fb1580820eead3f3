#include "runtime/emulator/ptx_target.h"

#include <algorithm>
#include <charconv>

namespace fusec::emulator {
namespace {

// Takes a number from the text; 0 without one, or for a number beyond any version or capability.
int number(std::string_view& text) {
  constexpr int kMost = 9999;
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < 0 || value > kMost) return 0;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

struct SharedRow {
  int capability, kib;
};
// Maximum shared memory per block in KiB, from each compute capability on (CUDA C++ Programming Guide, table of
// technical specifications).
constexpr SharedRow kShared[] = {{0, 48},   {70, 96}, {75, 64},  {80, 163}, {86, 99},
                                 {87, 163}, {89, 99}, {90, 227}, {120, 99}};

enum class Need : std::uint8_t { kAtLeast80, kAtLeast90, kSpecific90, kOnly90a };
struct OpcodeRow {
  std::string_view begin;  // whole words of the opcode
  Need need;
};
constexpr OpcodeRow kOpcodes[] = {
    {"wgmma", Need::kOnly90a},
    {"setmaxnreg", Need::kSpecific90},
    {"tensormap.replace", Need::kSpecific90},
    {"barrier.cluster", Need::kAtLeast90},
    {"cp.async.bulk", Need::kAtLeast90},
    {"cp.reduce.async.bulk", Need::kAtLeast90},
    {"elect", Need::kAtLeast90},
    {"fence.mbarrier_init", Need::kAtLeast90},
    {"fence.proxy.async", Need::kAtLeast90},
    {"getctarank", Need::kAtLeast90},
    {"griddepcontrol", Need::kAtLeast90},
    {"mapa", Need::kAtLeast90},
    {"mbarrier.arrive.expect_tx", Need::kAtLeast90},
    {"mbarrier.complete_tx", Need::kAtLeast90},
    {"mbarrier.expect_tx", Need::kAtLeast90},
    {"mbarrier.try_wait", Need::kAtLeast90},
    {"multimem", Need::kAtLeast90},
    {"red.async", Need::kAtLeast90},
    {"st.async", Need::kAtLeast90},
    {"stmatrix", Need::kAtLeast90},
    {"cp.async", Need::kAtLeast80},
    {"mbarrier", Need::kAtLeast80},
    {"redux", Need::kAtLeast80},
};

bool begins(std::string_view opcode, std::string_view words) {
  return opcode.starts_with(words) && (opcode.size() == words.size() || opcode[words.size()] == '.');
}

}  // namespace

PtxTarget parse_ptx_target(std::string_view target, std::string_view version) {
  PtxTarget parsed;
  if (target.starts_with("sm_")) {
    target.remove_prefix(3);
    parsed.capability = number(target);
    parsed.specific = target == "a" || target == "f";
  }
  const int major = number(version);
  if (version.starts_with('.')) version.remove_prefix(1);
  parsed.version = 10 * major + number(version);
  return parsed;
}

std::uint64_t max_shared_bytes(const PtxTarget& target) {
  int kib = 227;
  if (target.capability == 0) return std::uint64_t{1024} * 227;
  for (const SharedRow& row : kShared) {
    if (target.capability >= row.capability) kib = row.kib;
  }
  return std::uint64_t{1024} * static_cast<std::uint64_t>(kib);
}

std::uint64_t max_parameter_bytes(const PtxTarget& target) {
  const bool large =
      (target.version == 0 || target.version >= 81) && (target.capability == 0 || target.capability >= 70);
  return large ? 32764 : 4352;
}

std::string_view needed_target(const PtxTarget& target, std::string_view opcode) {
  if (target.capability == 0) return {};
  const auto row = std::find_if(std::begin(kOpcodes), std::end(kOpcodes),
                                [opcode](const OpcodeRow& candidate) { return begins(opcode, candidate.begin); });
  if (row == std::end(kOpcodes)) return {};
  switch (row->need) {
    case Need::kAtLeast80:
      return target.capability >= 80 ? "" : "sm_80 or newer";
    case Need::kAtLeast90:
      return target.capability >= 90 ? "" : "sm_90 or newer";
    case Need::kSpecific90:
      return target.capability >= 90 && target.specific ? "" : "sm_90a, or an architecture-specific one that is newer";
    case Need::kOnly90a:
      return target.capability == 90 && target.specific ? "" : "sm_90a";
  }
  return {};
}

}  // namespace fusec::emulator
