#include "runtime/emulator/access.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "runtime/emulator/access_parts.h"
#include "runtime/emulator/lanes.h"

namespace fusec::emulator {

const char* verb(Access access) {
  return access == Access::kRead ? "load" : access == Access::kWrite ? "store" : "atomic";
}

void report_misaligned(Warp& warp, int lane, std::uint64_t address, const Request& request, std::string_view where) {
  report(warp, lane, FindingKind::kMisaligned,
         fmt::format("{} of {} bytes at an address that is no multiple of it", verb(request.access), request.bytes),
         address, std::string(where));
}

namespace {

const Placed* find_placed(const std::vector<Placed>& layout, std::uint64_t address, std::uint32_t bytes) {
  auto above = std::upper_bound(layout.begin(), layout.end(), address,
                                [](std::uint64_t at, const Placed& placed) { return at < placed.offset; });
  if (above == layout.begin()) return nullptr;
  --above;
  // Subtract instead of adding, since address + bytes may wrap.
  return bytes <= above->bytes && address - above->offset <= above->bytes - bytes ? &*above : nullptr;
}

std::byte* out_of_bounds(Warp& warp, int lane, std::uint64_t address, const Request& request, Space space) {
  report(warp, lane, FindingKind::kOutOfBounds,
         fmt::format("{} of {} bytes outside every variable of {} memory", verb(request.access), request.bytes,
                     name(space)),
         address);
  return nullptr;
}

std::byte* resolve_local(Warp& warp, int lane, std::uint64_t address, const Request& request) {
  const Program& program = *warp.program;
  const Placed* placed = find_placed(program.local, address, request.bytes);
  if (placed == nullptr) return out_of_bounds(warp, lane, address, request, Space::kLocal);
  if (misaligned(warp, lane, address, request, placed->name)) return nullptr;
  const std::uint64_t at = static_cast<std::uint64_t>(lane) * program.local_bytes + address;
  std::uint8_t* written = &warp.local_written[at];
  if (request.access != Access::kWrite && std::find(written, written + request.bytes, 0) != written + request.bytes) {
    if (request.into_registers) {
      std::uint64_t missing = 0;
      for (std::uint32_t i = 0; i < request.bytes; ++i) missing |= std::uint64_t{written[i] == 0} << i;
      note_unwritten(warp, lane, missing, "reads local memory that was never written", address, placed->name);
    } else {
      report(warp, lane, FindingKind::kUnwrittenRead, "reads local memory that was never written", address,
             placed->name);
    }
  }
  if (!request.into_registers) std::fill(written, written + request.bytes, 1);
  return &warp.local[at];
}

std::byte* resolve_read_only(Warp& warp, int lane, std::uint64_t address, const Request& request, Space space) {
  LaunchState& state = *warp.block->launch;
  const bool constant = space == Space::kConst;
  const std::vector<Placed>& layout = constant ? state.module->constants : state.program->parameters;
  const Placed* placed = find_placed(layout, address, request.bytes);
  if (placed == nullptr) return out_of_bounds(warp, lane, address, request, space);
  if (request.access != Access::kRead) {
    report(warp, lane, FindingKind::kReadOnlyWrite, fmt::format("writes {} memory", name(space)), address,
           placed->name);
    return nullptr;
  }
  if (misaligned(warp, lane, address, request, placed->name)) return nullptr;
  return (constant ? state.variables->constant.data() : state.parameters.data()) + address;
}

Space window_of(std::uint64_t address) {
  if (address < kSharedWindow) return Space::kGlobal;  // no buffer is there, so it is reported as out of bounds
  if (address < kLocalWindow) return Space::kShared;
  if (address < kParamWindow) return Space::kLocal;
  if (address < kConstWindow) return Space::kParam;
  if (address < kConstWindow + kSharedWindow) return Space::kConst;
  return Space::kGlobal;
}

std::uint64_t window_base(Space space) {
  switch (space) {
    case Space::kShared:
      return kSharedWindow;
    case Space::kLocal:
      return kLocalWindow;
    case Space::kParam:
      return kParamWindow;
    case Space::kConst:
      return kConstWindow;
    default:
      return 0;
  }
}

void resolve_generic(Warp& warp, const Request& request, std::uint32_t lanes, const Addresses& addresses,
                     Hosts& hosts) {
  std::uint32_t left = lanes;
  while (left != 0) {
    const Space space = window_of(addresses[std::countr_zero(left)]);
    std::uint32_t same = 0;
    Addresses local;
    for (int lane = 0; lane < kLanes; ++lane) {
      local[lane] = addresses[lane] - window_base(space);
      if ((left >> lane & 1) != 0 && window_of(addresses[lane]) == space) same |= 1u << lane;
    }
    Request inner = request;
    inner.space = space;
    resolve(warp, inner, same, local, hosts);
    left &= ~same;
  }
}

}  // namespace

void gather_addresses(const Warp& warp, const Instruction& in, Addresses& addresses) {
  const auto offset = static_cast<std::uint64_t>(in.immediate);
  if (in.a_width == 8) {
    std::memcpy(addresses, warp.source(in.a), sizeof(addresses));
    for (std::uint64_t& address : addresses) address += offset;
    return;
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    addresses[lane] = static_cast<std::uint32_t>(load_raw(warp, in.a, in.a_width, lane) + offset);
  }
}

namespace {

// Whether any two of the lanes [begin, end) access the same bank. May return true for misaligned accesses.
bool banks_meet(std::uint32_t lanes, int begin, int end, const Addresses& addresses, std::uint32_t bytes) {
  const std::uint32_t words = bytes <= 4 ? 1 : bytes / 4;
  const std::uint32_t first = words >= 32 ? kAllLanes : (1u << words) - 1;
  std::uint32_t banks = 0;
  bool meet = false;
  for (int lane = begin; lane < end; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    const std::uint32_t own = std::rotl(first, static_cast<int>(addresses[lane] / 4 % 32));
    meet |= (banks & own) != 0 || addresses[lane] % bytes != 0;
    banks |= own;
  }
  return meet;
}

}  // namespace

void count_banks(Warp& warp, std::uint32_t lanes, const Addresses& addresses, std::uint32_t bytes) {
  const int lanes_per_pass = bytes <= 4 ? 32 : bytes <= 8 ? 16 : 8;
  std::uint64_t conflicts = 0;
  for (int begin = 0; begin < kLanes; begin += lanes_per_pass) {
    if (!banks_meet(lanes, begin, begin + lanes_per_pass, addresses, bytes)) continue;
    std::uint64_t words[kLanes];
    std::size_t count = 0;
    for (int lane = begin; lane < begin + lanes_per_pass; ++lane) {
      if ((lanes >> lane & 1) == 0) continue;
      for (std::uint64_t word = addresses[lane] / 4; word <= (addresses[lane] + bytes - 1) / 4 && count < kLanes;
           ++word) {
        words[count++] = word;
      }
    }
    if (!std::is_sorted(words, words + count)) std::sort(words, words + count);
    count = static_cast<std::size_t>(std::unique(words, words + count) - words);
    std::uint8_t banks[32] = {};
    std::uint8_t most = 0;
    for (std::size_t i = 0; i < count; ++i) {
      // Every block of a cluster has its own banks.
      if (i > 0 && words[i] * 4 >> kRankShift != words[i - 1] * 4 >> kRankShift) std::ranges::fill(banks, 0);
      most = std::max(most, ++banks[words[i] % 32]);
    }
    if (most > 1) conflicts += static_cast<std::uint64_t>(most - 1);
  }
  ++warp.block->counters.shared_requests;
  warp.block->counters.shared_bank_conflicts += conflicts;
}

void resolve(Warp& warp, const Request& request, std::uint32_t lanes, const Addresses& addresses, Hosts& hosts) {
  switch (request.space) {
    case Space::kGlobal:
      return resolve_global_lanes(warp, request, lanes, addresses, hosts);
    case Space::kGeneric:
      return resolve_generic(warp, request, lanes, addresses, hosts);
    case Space::kShared:
    case Space::kSharedCluster:
      count_banks(warp, lanes, addresses, request.bytes);
      break;
    default:
      break;
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    const std::byte* data = request.data == nullptr ? nullptr : request.data + lane * request.stride;
    switch (request.space) {
      case Space::kLocal:
        hosts[lane] = resolve_local(warp, lane, addresses[lane], request);
        if (request.access == Access::kWrite && hosts[lane] != nullptr)
          note_change(*warp.block, hosts[lane], data, request.bytes);
        break;
      case Space::kParam:
      case Space::kConst:
        hosts[lane] = resolve_read_only(warp, lane, addresses[lane], request, request.space);
        break;
      default:
        hosts[lane] = resolve_shared(warp, lane, addresses[lane], request, data);
        break;
    }
  }
}

}  // namespace fusec::emulator
