// Compiles a file of tests/emulator/kernels with nvcc, once for all tests that use it.
#pragma once

#include "runtime/emulator/emulator.h"

namespace fusec::emulator::testing {

// Null, with a message, where there is no nvcc.
const Module* compiled_module(const char* source, const char* arch);

}  // namespace fusec::emulator::testing
