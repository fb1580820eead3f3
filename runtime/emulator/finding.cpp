// Records, names and formats findings; sums counters.
#include <fmt/format.h>

#include "runtime/emulator/machine.h"

namespace fusec::emulator {

namespace {

// The linear number of a thread in the grid; the message of the first thread is kept.
std::uint64_t order_of(const Warp& warp, int lane) {
  return warp.block->number * kMaxThreads + std::uint64_t{warp.number} * kLanes + static_cast<std::uint64_t>(lane);
}

}  // namespace

bool reported_before(Warp& warp, int lane, FindingKind kind) {
  LaunchState& state = *warp.block->launch;
  const std::lock_guard lock(state.findings_mutex);
  const auto found = state.findings.find(LaunchState::Place{warp.pc, kind});
  if (found == state.findings.end() || order_of(warp, lane) < found->second.first) return false;
  ++found->second.second.count;
  return true;
}

void report(Warp& warp, int lane, FindingKind kind, std::string message, std::uint64_t address, std::string buffer) {
  Block& block = *warp.block;
  LaunchState& state = *block.launch;
  const std::uint64_t thread = std::uint64_t{warp.number} * kLanes + static_cast<std::uint64_t>(lane);
  const std::uint64_t order = order_of(warp, lane);
  const std::lock_guard lock(state.findings_mutex);
  const LaunchState::Place place{warp.pc, kind};
  auto found = state.findings.find(place);
  if (found != state.findings.end()) {
    ++found->second.second.count;
    if (order >= found->second.first) return;
  } else if (state.findings.size() >= state.options->max_findings) {
    state.stop = true;
    return;
  }
  const Program::Origin& origin = warp.program->origins[warp.pc];
  Finding finding{.kind = kind,
                  .message = std::move(message),
                  .kernel = warp.program->kernel,
                  .ptx_line = origin.line,
                  .instruction = origin.opcode,
                  .source_line = origin.source_line,
                  .block = block.index,
                  .thread = position(thread, state.launch->block),
                  .address = address,
                  .buffer = std::move(buffer)};
  for (const auto& [number, file] : state.module->ptx.source_files) {
    if (number == origin.source_file) finding.source_file = file;
  }
  if (found != state.findings.end()) {
    finding.count = found->second.second.count;
    found->second = {order, std::move(finding)};
  } else {
    state.findings.emplace(place, std::pair{order, std::move(finding)});
  }
}

std::string_view name(FindingKind kind) {
  switch (kind) {
    case FindingKind::kOutOfBounds:
      return "out_of_bounds";
    case FindingKind::kMisaligned:
      return "misaligned";
    case FindingKind::kUnwrittenRead:
      return "unwritten_read";
    case FindingKind::kReadOnlyWrite:
      return "read_only_write";
    case FindingKind::kSharedRace:
      return "shared_race";
    case FindingKind::kGlobalRace:
      return "global_race";
    case FindingKind::kAsyncRead:
      return "async_read";
    case FindingKind::kProxyFence:
      return "proxy_fence";
    case FindingKind::kBarrierDivergence:
      return "barrier_divergence";
    case FindingKind::kDeadlock:
      return "deadlock";
    case FindingKind::kWarpSync:
      return "warp_sync";
    case FindingKind::kRunaway:
      return "runaway";
    case FindingKind::kTrap:
      return "trap";
    case FindingKind::kLaunch:
      return "launch";
  }
  return "?";
}

std::string_view name(InstructionClass instruction_class) {
  switch (instruction_class) {
    case InstructionClass::kInteger:
      return "integer";
    case InstructionClass::kFloat32:
      return "float32";
    case InstructionClass::kFloat64:
      return "float64";
    case InstructionClass::kHalf:
      return "half";
    case InstructionClass::kSpecialFunction:
      return "special_function";
    case InstructionClass::kConvert:
      return "convert";
    case InstructionClass::kMove:
      return "move";
    case InstructionClass::kLoadStore:
      return "load_store";
    case InstructionClass::kAtomic:
      return "atomic";
    case InstructionClass::kWarp:
      return "warp";
    case InstructionClass::kBarrier:
      return "barrier";
    case InstructionClass::kControl:
      return "control";
    case InstructionClass::kTensor:
      return "tensor";
    case InstructionClass::kOther:
      return "other";
  }
  return "?";
}

std::string describe(const Finding& finding) {
  std::string text = finding.kernel;
  if (finding.source_line != 0) text += fmt::format(" {}:{}", finding.source_file, finding.source_line);
  if (finding.ptx_line != 0) text += fmt::format(" (ptx line {}: {})", finding.ptx_line, finding.instruction);
  text += fmt::format(": {}: {}", name(finding.kind), finding.message);
  if (!finding.buffer.empty()) text += fmt::format(" [{}]", finding.buffer);
  if (finding.kind != FindingKind::kLaunch) {
    text += fmt::format(", block ({},{},{}) thread ({},{},{})", finding.block.x, finding.block.y, finding.block.z,
                        finding.thread.x, finding.thread.y, finding.thread.z);
  }
  if (finding.address != 0) text += fmt::format(", address {:#x}", finding.address);
  if (finding.count > 1) text += fmt::format(", {} times", finding.count);
  return text;
}

std::string describe(const Report& report) {
  std::string text;
  for (const Finding& finding : report.findings) text += describe(finding) + "\n";
  return text;
}

Counters& Counters::operator+=(const Counters& other) {
  for (std::size_t i = 0; i < kInstructionClasses; ++i) {
    warp_instructions[i] += other.warp_instructions[i];
    lane_instructions[i] += other.lane_instructions[i];
  }
  sectors_read += other.sectors_read;
  sectors_written += other.sectors_written;
  distinct_sectors_read += other.distinct_sectors_read;
  distinct_sectors_written += other.distinct_sectors_written;
  small_sectors_read += other.small_sectors_read;
  distinct_small_sectors_read += other.distinct_small_sectors_read;
  bytes_read += other.bytes_read;
  bytes_written += other.bytes_written;
  global_requests += other.global_requests;
  shared_requests += other.shared_requests;
  shared_bank_conflicts += other.shared_bank_conflicts;
  tensor_multiply_adds += other.tensor_multiply_adds;
  barriers += other.barriers;
  blocks += other.blocks;
  warps += other.warps;
  return *this;
}

}  // namespace fusec::emulator
