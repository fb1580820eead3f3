// The device's memory inside the emulator: address windows, buffers with their shadow state, and the variables of
// modules. Every buffer has 64 GiB of address space and starts in the middle of it.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/emulator/emulator.h"
#include "runtime/emulator/program.h"

namespace fusec::emulator {

inline constexpr std::uint64_t kSharedWindow = std::uint64_t{1} << 32;
inline constexpr std::uint64_t kLocalWindow = std::uint64_t{2} << 32;
inline constexpr std::uint64_t kParamWindow = std::uint64_t{3} << 32;
inline constexpr std::uint64_t kConstWindow = std::uint64_t{4} << 32;
inline constexpr int kRegionShift = 36;
inline constexpr std::uint64_t kRegionBase = std::uint64_t{1} << (kRegionShift - 1);
// Shared addresses: a block's own shared memory starts at 0, that of rank r of its cluster at (r + 1) << kRankShift.
inline constexpr int kRankShift = 24;
inline constexpr std::uint64_t kOffsetMask = (std::uint64_t{1} << kRankShift) - 1;

// Who accessed a byte: kNobody, kBefore (before this launch), the code of a block (kFirstCode and up), or kMany (more
// than one block). The bit kStrongOwner marks an atomic or another strong access.
using ByteOwner = std::uint16_t;
inline constexpr ByteOwner kNobody = 0, kBefore = 1, kFirstCode = 2, kMany = 0x7fff, kStrongOwner = 0x8000;

struct Region {
  std::string name;
  std::byte* host = nullptr;
  std::uint64_t bytes = 0;
  std::uint64_t base = 0;  // device address
  bool writable = true;
  std::atomic<bool> touched{true};                          // accessed since the last launch began
  std::vector<ByteOwner> writers;                           // by byte; empty: read-only and initialized
  std::vector<ByteOwner> readers;                           // by byte, in this launch; empty: not tracked
  bool had_race = false;                                    // blocks wrote different values to one byte
  std::vector<std::uint8_t> bulk_stores;                    // by byte: unfinished bulk stores; empty: kernel has none
  std::vector<std::uint8_t> sectors_read, sectors_written;  // by sector: flags of this launch
};

// The variables of one module in global and constant memory, created at its first launch. Global variables have fixed
// addresses from kModuleWindow on (above those of 2^24 buffers), valid for the module of the current launch.
inline constexpr std::uint64_t kModuleWindow = std::uint64_t{1} << 60;
struct ModuleVariables {
  std::shared_ptr<ModuleData> module;  // keeps the key of MemoryData::modules alive
  std::vector<std::vector<std::byte>> storage;
  std::vector<std::unique_ptr<Region>> regions;  // by ModuleData::global_numbers
  std::vector<std::byte> constant;               // the constant bank
};

class MemoryData {
 public:
  std::uint32_t add(std::string name, std::span<std::byte> bytes, bool initialized, bool writable);
  // The region with this address in its 64 GiB range, even if outside its bounds; null if there is none.
  Region* find(std::uint64_t address) {
    const std::uint64_t number = address >> kRegionShift;
    return number >= 1 && number <= regions.size() ? regions[number - 1].get() : nullptr;
  }
  // Resets the access records of the last launch.
  void begin_launch(bool check_races, bool has_bulk_stores, ModuleVariables& variables);
  ModuleVariables& variables_of(const std::shared_ptr<ModuleData>& module);

  std::vector<std::unique_ptr<Region>> regions;
  std::vector<Buffer> buffers;                           // by Memory::Id, like `regions`
  std::map<const ModuleData*, ModuleVariables> modules;  // looked up, never iterated
};

}  // namespace fusec::emulator
