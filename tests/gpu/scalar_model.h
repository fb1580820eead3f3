// What an instruction computes, worked out on the host's own arithmetic from the ISA's text: nothing here is shared
// with the emulator, so that the self-check compares two independent readings.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace fusec::gpu_test {

using Model = std::function<std::uint64_t(const std::uint64_t* operands)>;

// Null where there is no model of the instruction.
Model integer_model(const std::string& instruction);
// `op` is add, sub, mul, div, fma, sqrt or rcp; `ending` f32, ftz.f32, sat.f32 or f64. Uses the host's rounding modes.
Model float_model(const std::string& op, const std::string& rounding, const std::string& ending);

double half_value(std::uint16_t bits);

}  // namespace fusec::gpu_test
