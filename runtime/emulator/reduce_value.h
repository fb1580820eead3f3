// One atomic update of memory: the operations of atom, red and reducing bulk copies on all their types.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/emulator/ptx_types.h"

namespace fusec::emulator {

enum class ReduceOp : std::uint16_t { kAdd, kMin, kMax, kInc, kDec, kAnd, kOr, kXor, kExch, kCas };

// Combines the value of `type` at `host` with `operand` (kCas: replaces it by `swap` if it equals `operand`). Uses a
// compare-and-swap of the host, so that host threads may run blocks in parallel. Returns the old value and sets
// `changed` if the new one differs.
std::uint64_t reduce_value(std::byte* host, ReduceOp op, Type type, std::uint64_t operand, std::uint64_t swap,
                           bool& changed);

}  // namespace fusec::emulator
