// One atomic update of memory: the operations of atom, red and the reducing bulk copies on every type that has them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/emulator/ptx_types.h"

namespace fusec::emulator {

enum class ReduceOp : std::uint16_t { kAdd, kMin, kMax, kInc, kDec, kAnd, kOr, kXor, kExch, kCas };

// Replaces the value of `type` at `host` by its combination with `operand` (kCas: by `swap` where it equals `operand`)
// in one compare-and-swap, so that host threads may run blocks at the same time. Gives the old value, and
// sets `changed` where the new one is another.
std::uint64_t reduce_value(std::byte* host, ReduceOp op, Type type, std::uint64_t operand, std::uint64_t swap,
                           bool& changed);

}  // namespace fusec::emulator
