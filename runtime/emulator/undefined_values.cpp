#include "runtime/emulator/undefined_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "runtime/emulator/access.h"
#include "runtime/emulator/lanes.h"

namespace fusec::emulator {
namespace {

constexpr std::uint32_t kNoLoad = 0xffffffffu;

UndefinedValues::Register* find(UndefinedValues& values, Slot slot) {
  const auto found = std::find_if(values.registers.begin(), values.registers.end(),
                                  [slot](const UndefinedValues::Register& each) { return each.slot == slot; });
  return found == values.registers.end() ? nullptr : &*found;
}

// Undefined lanes of operands, and the load that they come from.
struct Undefined {
  std::uint32_t lanes = 0;
  std::uint32_t load = kNoLoad;
  void add(std::uint32_t more, std::uint32_t from) {
    if (more == 0) return;
    if (lanes == 0) load = from;
    lanes |= more;
  }
  void add(const Undefined& other) { add(other.lanes, other.load); }
};

Undefined undefined(Warp& warp, Slot slot, std::uint32_t lanes) {
  Undefined result;
  if (slot == kNoSlot) return result;
  if (const UndefinedValues::Register* known = find(warp.undefined, slot))
    result.add(known->lanes & lanes, known->load);
  return result;
}

// Marks the lanes of `now` in a register as undefined and the other `lanes` as defined.
void set(Warp& warp, Slot slot, std::uint32_t lanes, const Undefined& now) {
  UndefinedValues& values = warp.undefined;
  UndefinedValues::Register* known = find(values, slot);
  if (known == nullptr) {
    if ((now.lanes & lanes) != 0) values.registers.push_back({slot, now.lanes & lanes, now.load});
    return;
  }
  known->lanes = (known->lanes & ~lanes) | (now.lanes & lanes);
  if ((now.lanes & lanes) != 0) known->load = now.load;
  if (known->lanes == 0) {
    *known = values.registers.back();
    values.registers.pop_back();
  }
  if (values.registers.empty()) values.loads.clear();
}

// Reports the load of an undefined value that affects the result, once per load.
void use(Warp& warp, const Undefined& value) {
  if (value.lanes == 0) return;
  UndefinedValues& values = warp.undefined;
  const UndefinedValues::Load& load = values.loads[value.load];
  int lane = std::countr_zero(value.lanes);
  for (int other = 0; other < kLanes; ++other) {
    if ((value.lanes >> other & 1) != 0 && !load.places[static_cast<std::size_t>(other)].message.empty()) {
      lane = other;
      break;
    }
  }
  const UndefinedValues::Place& place = load.places[static_cast<std::size_t>(lane)];
  const std::string text = place.message.empty() ? "reads what nobody has written" : place.message;
  const std::uint32_t pc = warp.pc;
  const std::string where = fmt::format("{}; its value is used in line {}", text, warp.program->origins[pc].line);
  warp.pc = load.pc;
  report(warp, lane, FindingKind::kUnwrittenRead, where, place.address, place.buffer);
  warp.pc = pc;
  std::erase_if(values.registers, [&](const UndefinedValues::Register& each) { return each.load == value.load; });
  if (values.registers.empty()) values.loads.clear();
}

std::uint32_t lanes_where(const Warp& warp, const DataFlow::Operand& operand, bool ones) {
  if (operand.width == 0) {
    const std::uint32_t mask = load_predicate(warp, operand.slot);
    return (operand.negated ? ~mask : mask) ^ (ones ? 0 : kAllLanes);
  }
  const std::uint64_t all = operand.width >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * operand.width)) - 1;
  std::uint32_t result = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    if (load_raw(warp, operand.slot, operand.width, lane) == (ones ? all : 0)) result |= 1u << lane;
  }
  return result;
}

// The undefined lanes of `a and b` or `a or b`. A defined operand may decide: an `and` by zero, an `or` by ones.
Undefined decided(const Warp& warp, const Undefined& a, const Undefined& b, std::uint32_t a_decides,
                  const DataFlow::Operand& b_operand, bool by_ones) {
  const std::uint32_t b_decides = lanes_where(warp, b_operand, by_ones) & ~b.lanes;
  Undefined result;
  result.add(a.lanes & ~b_decides, a.load);
  result.add(b.lanes & ~(a_decides & ~a.lanes), b.load);
  return result;
}

Undefined computed(Warp& warp, const DataFlow& flow, std::uint32_t lanes) {
  const std::vector<DataFlow::Operand>& reads = flow.reads;
  const auto of = [&](std::size_t i) { return undefined(warp, reads[i].slot, lanes); };
  Undefined result;
  switch (flow.kind) {
    case DataFlow::Kind::kAnd:
    case DataFlow::Kind::kOr: {
      const bool ones = flow.kind == DataFlow::Kind::kOr;
      return decided(warp, of(0), of(1), lanes_where(warp, reads[0], ones), reads[1], ones);
    }
    case DataFlow::Kind::kCompareAnd:
    case DataFlow::Kind::kCompareOr: {
      Undefined comparison = of(0);
      comparison.add(of(1));
      return decided(warp, comparison, of(2), 0, reads[2], flow.kind == DataFlow::Kind::kCompareOr);
    }
    case DataFlow::Kind::kSelect: {
      const std::uint32_t first = lanes_where(warp, reads[2], true);
      const Undefined a = of(0), b = of(1);
      result.add(a.lanes & first, a.load);
      result.add(b.lanes & ~first, b.load);
      result.add(of(2));
      return result;
    }
    default:
      for (std::size_t i = 0; i < reads.size(); ++i) result.add(of(i));
      return result;
  }
}

Undefined guard_of(Warp& warp, const DataFlow& flow, std::uint32_t present) {
  return undefined(warp, flow.guard, present);
}

void forget_written(Warp& warp, const Instruction& in, const Addresses& addresses, std::uint32_t element, int lane) {
  const std::uint32_t size = in.bytes / in.count;
  std::uint64_t address = addresses[lane] + element * size;
  bool local = in.space == Space::kLocal;
  if (in.space == Space::kGeneric) {
    local = address >= kLocalWindow;
    address -= local ? kLocalWindow : kSharedWindow;
  }
  if (local) {
    const std::uint64_t stride = warp.program->local_bytes;
    if (address > stride || size > stride - address) return;  // reported already
    std::uint8_t* written = &warp.local_written[static_cast<std::uint64_t>(lane) * stride + address];
    std::fill(written, written + size, 0);
    return;
  }
  Block* home = block_of_shared(warp, address);
  const std::uint64_t offset = address & ((1u << kRankShift) - 1);
  if (home == nullptr || offset + size > home->shared.size()) return;
  for (std::uint64_t at = offset; at < offset + size; ++at) {
    home->shadow[at / 4].written &= static_cast<std::uint8_t>(~(1u << (at % 4)));
  }
}

// An undefined value in a store to global memory is a finding; elsewhere its bytes become unwritten.
void store_carefully(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  use(warp, undefined(warp, in.a, lanes));
  Addresses addresses;
  gather_addresses(warp, in, addresses);
  std::uint32_t visible = in.space == Space::kGlobal ? lanes : 0;
  for (int lane = 0; lane < kLanes && in.space == Space::kGeneric; ++lane) {
    const std::uint64_t address = addresses[lane];
    if (address < kSharedWindow || address >= kParamWindow) visible |= lanes & (1u << lane);
  }
  for (std::uint32_t i = 0; i < in.count; ++i) {
    use(warp, undefined(warp, warp.program->lists[in.list + i].slot, visible));
  }
  in.handler(warp, in, lanes);
  for (std::uint32_t i = 0; i < in.count; ++i) {
    const Undefined value = undefined(warp, warp.program->lists[in.list + i].slot, lanes & ~visible);
    for (int lane = 0; lane < kLanes; ++lane) {
      if ((value.lanes >> lane & 1) != 0) forget_written(warp, in, addresses, i, lane);
    }
  }
}

}  // namespace

void note_unwritten(Warp& warp, int lane, std::uint64_t bytes, std::string message, std::uint64_t address,
                    std::string buffer) {
  UndefinedValues& values = warp.undefined;
  std::size_t load = 0;
  while (load < values.loads.size() && values.loads[load].pc != warp.pc) ++load;
  if (load == values.loads.size()) values.loads.push_back({.pc = warp.pc, .places = {}});
  values.loads[load].places[static_cast<std::size_t>(lane)] = {std::move(message), std::move(buffer), address};
  values.reads.push_back({lane, bytes, static_cast<std::uint32_t>(load)});
}

void note_loaded(Warp& warp, const Instruction& in, std::uint32_t size, std::uint32_t lanes) {
  UndefinedValues& values = warp.undefined;
  const bool before = values.any();
  const std::vector<UndefinedValues::Read> reads = std::move(values.reads);
  values.reads.clear();
  std::vector<UndefinedValues::Load> loads;
  if (!reads.empty()) loads = values.loads;  // a copy, since writing the last other undefined register clears them
  for (std::uint32_t element = 0; element < in.count; ++element) {
    const std::uint64_t bytes = ((std::uint64_t{1} << size) - 1) << (element * size);
    Undefined now;
    for (const UndefinedValues::Read& read : reads) {
      if ((read.bytes & bytes) != 0) now.add(1u << read.lane, read.load);
    }
    set(warp, warp.program->lists[in.list + element].slot, lanes, now);
  }
  if (!values.any()) return;
  if (values.loads.empty()) values.loads = std::move(loads);
  if (!before) warp.wants_yield = true;  // to continue with tracking
}

void execute_carefully(Warp& warp, const Instruction& in, std::uint32_t lanes, std::uint32_t present) {
  const DataFlow& flow = warp.program->flows[warp.pc];
  const Undefined guard = guard_of(warp, flow, present);
  const bool computes = flow.kind != DataFlow::Kind::kLoad && flow.kind != DataFlow::Kind::kStore &&
                        flow.kind != DataFlow::Kind::kUse && flow.kind != DataFlow::Kind::kMix;
  if (!computes) use(warp, guard);
  if (flow.kind == DataFlow::Kind::kStore && lanes != 0) return store_carefully(warp, in, lanes);
  Undefined result = computed(warp, flow, lanes);
  if (flow.kind == DataFlow::Kind::kLoad || flow.kind == DataFlow::Kind::kUse) {
    use(warp, result);
    result = {};
  } else if (flow.kind == DataFlow::Kind::kMix && result.lanes != 0) {
    result.lanes = lanes;
  }
  std::uint32_t written = lanes;
  if (computes) {
    result.add(guard);
    written |= guard.lanes;
  }
  if (flow.kind != DataFlow::Kind::kLoad) {
    for (Slot slot : flow.writes) set(warp, slot, written, result);
  }
  if (lanes != 0) in.handler(warp, in, lanes);
}

void check_control(Warp& warp, std::uint32_t lanes, std::uint32_t present) {
  const DataFlow& flow = warp.program->flows[warp.pc];
  use(warp, guard_of(warp, flow, present));
  if (warp.program->code[warp.pc].control != Control::kWarpSync) use(warp, computed(warp, flow, lanes));
}

}  // namespace fusec::emulator
