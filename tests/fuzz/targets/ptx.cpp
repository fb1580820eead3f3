// PTX text: every kernel that the emulator takes runs over small buffers, within a budget of instructions.
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "fuzz/seed_files.h"
#include "fuzz/target.h"
#include "runtime/emulator/emulator.h"
#include "runtime/emulator/module_data.h"
#include "runtime/emulator/tensor_map.h"

namespace fusec::fuzzing {

using namespace emulator;

namespace {

constexpr std::uint64_t kMaxModuleBytes = 1u << 22, kMaxLocalBytes = 1u << 14, kMaxRegisters = 1u << 14;
constexpr std::size_t kBufferBytes = 1024;

// What is legal but would only make the fuzzer slow.
bool is_small(const PtxModule& module) {
  std::uint64_t bytes = 0;
  for (const PtxVariable& variable : module.variables) bytes += variable.bytes;
  for (const PtxFunction& function : module.functions) {
    if (function.registers.size() > kMaxRegisters) return false;
  }
  return bytes <= kMaxModuleBytes;
}

// Exactly as large as the emulator is told, on the heap: a sanitizer sees every byte read beyond.
struct Buffers {
  std::unique_ptr<std::byte[]> in = std::make_unique<std::byte[]>(kBufferBytes);
  std::unique_ptr<std::byte[]> out = std::make_unique<std::byte[]>(kBufferBytes);
  Memory memory;
  Memory::Id in_id = memory.add({.name = "in", .bytes = {in.get(), kBufferBytes}, .writable = false});
  Memory::Id out_id = memory.add({.name = "out", .bytes = {out.get(), kBufferBytes}, .initialized = false});
};

Argument argument_for(const Buffers& buffers, std::size_t i, std::size_t bytes) {
  if (bytes == kTensorMapBytes) {
    return encode_tensor_map({.address = buffers.memory.address(buffers.in_id),
                              .element_bytes = 4,
                              .rank = 2,
                              .swizzle = 32,
                              .extents = {16, 16},
                              .strides = {4, 64},
                              .box = {8, 4}});
  }
  Argument argument(bytes);
  const std::uint64_t address = buffers.memory.address(i % 2 == 0 ? buffers.in_id : buffers.out_id);
  if (bytes == 8) std::memcpy(argument.data(), &address, 8);
  if (bytes == 4) argument[0] = std::byte{16};
  return argument;
}

}  // namespace

bool execute(std::string_view text) {
  const Module module(text, "fuzz.ptx");
  if (!is_small(module.data()->ptx)) return false;
  bool ran = false;
  for (const std::string& name : module.kernels()) {
    const KernelInfo info = module.kernel(name);
    if (info.local_bytes > kMaxLocalBytes) continue;
    Buffers buffers;
    Launch launch{.kernel = name, .grid = {2}, .block = {64}, .dynamic_shared_bytes = 256};
    for (std::size_t i = 0; i < info.parameter_bytes.size(); ++i) {
      launch.arguments.push_back(argument_for(buffers, i, info.parameter_bytes[i]));
    }
    describe(run(module, launch, buffers.memory, {.max_instructions = 2000}));
    ran = true;
  }
  return ran;
}

std::vector<std::string> seeds() {
  return files_of("tests/fuzz/seeds", ".ptx");
}

}  // namespace fusec::fuzzing
