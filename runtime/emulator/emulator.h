// Executes PTX kernels on the CPU, checks every memory access and counts instructions and memory traffic.
//
//   emulator::Module module(ptx_text, "out.ptx");  // parsed once; each kernel is decoded once
//   emulator::Memory memory;                       // the device's memory; remembers written bytes across launches
//   auto x = memory.add({.name = "x", .bytes = x_bytes, .initialized = true, .writable = false});
//   auto y = memory.add({.name = "y", .bytes = y_bytes, .initialized = false});
//   emulator::Launch launch{.kernel = "model_0_add", .grid = {64}, .block = {256}};
//   launch.arguments = {emulator::pointer_argument(memory, x), emulator::pointer_argument(memory, y),
//                       emulator::scalar_argument<int>(n)};
//   emulator::Report report = emulator::run(module, launch, memory, {});
//   if (!report.findings.empty()) puts(emulator::describe(report).c_str());
//
// Buffers are host memory that the caller keeps alive; kernels read and write it in place. An arena with several values
// can be added as one buffer, or as several with separate address ranges and guards between them. Checks are always
// on (see FindingKind). A kernel with findings runs on: a bad load returns 0, a bad store is dropped. An unknown
// instruction throws fusec::Error that names it and its line.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fusec::emulator {

class ModuleData;
class MemoryData;

struct Dim3 {
  std::uint32_t x = 1, y = 1, z = 1;
  std::uint64_t count() const { return std::uint64_t{x} * y * z; }
  friend bool operator==(const Dim3&, const Dim3&) = default;
};

struct KernelInfo {
  std::string name;
  std::vector<std::size_t> parameter_bytes;
  std::uint64_t static_shared_bytes = 0;
  std::uint64_t local_bytes = 0;  // per thread
};

// A parsed PTX file. Copies share the parsed data.
class Module {
 public:
  // Throws Error (kInput) that names file and line.
  Module(std::string_view ptx, const std::string& file);
  std::vector<std::string> kernels() const;
  // Throws Error if the kernel does not exist or uses an unknown instruction.
  KernelInfo kernel(std::string_view name) const;

  const std::shared_ptr<ModuleData>& data() const { return data_; }

 private:
  std::shared_ptr<ModuleData> data_;
};

struct Buffer {
  std::string name;
  std::span<std::byte> bytes;
  bool initialized = true;  // if false, using a byte before it is written is a finding
  bool writable = true;     // if false, a write is a finding
};

// A device's memory: its buffers, which of their bytes have been written, and the variables of modules.
class Memory {
 public:
  using Id = std::uint32_t;
  Memory();
  ~Memory();
  Memory(Memory&&) noexcept;
  Memory& operator=(Memory&&) noexcept;

  Id add(Buffer buffer);
  // The device address of a byte of a buffer. Buffers are gigabytes apart, so a small offset error never reaches
  // another buffer.
  std::uint64_t address(Id id, std::int64_t offset = 0) const;
  const Buffer& buffer(Id id) const;
  // Marks bytes as written (the host filled them) or as unwritten (another value uses that part of the arena now).
  void mark_written(Id id, std::size_t offset, std::size_t bytes);
  void mark_unwritten(Id id, std::size_t offset, std::size_t bytes);
  // Gives the buffer to another value, which the last launch wrote in place. Bytes that launch did not write become
  // unwritten.
  void take_over(Id id, std::string name);
  // Ends the buffer's lifetime: later accesses are out of bounds. Its address range is not used again.
  void remove(Id id);
  // The first unwritten byte from `offset` on; nothing if there is none.
  std::optional<std::size_t> first_unwritten(Id id, std::size_t offset = 0) const;

  MemoryData& data() { return *data_; }

 private:
  std::unique_ptr<MemoryData> data_;
};

using Argument = std::vector<std::byte>;

template <class T>
Argument scalar_argument(const T& value) {
  Argument bytes(sizeof(T));
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}
inline Argument pointer_argument(const Memory& memory, Memory::Id id, std::int64_t offset = 0) {
  return scalar_argument(memory.address(id, offset));
}

struct Launch {
  std::string kernel;
  Dim3 grid, block;
  Dim3 cluster{0, 0, 0};  // zeros: the kernel's required cluster, or none
  std::uint64_t resident_blocks =
      1;  // size of a group of co-resident blocks; Options::sample_blocks keeps groups whole
  std::uint32_t dynamic_shared_bytes = 0;
  std::vector<Argument> arguments;  // one per parameter, each as long as its parameter
};

struct Options {
  int threads = 1;  // host threads that execute blocks
  // Budget of warp instructions per block; turns in which it only waits for other blocks do not count. The first block
  // that exceeds it ends the launch (kRunaway). Instructions that take longer to emulate (atomics, barriers, matrix
  // products, bulk copies) count for more. Waits that provably never end are reported without using up the budget.
  std::uint64_t max_instructions = std::uint64_t{1} << 26;
  std::uint64_t max_shared_bytes = 227 * 1024;  // per block, at most what the module's .target has; more is a finding
  std::size_t max_findings = 32;                // distinct places reported
  bool check_races = true;
  std::uint64_t sample_blocks = 0;  // approximate number of blocks to run, spread over the grid; 0: all
};

enum class FindingKind : std::uint8_t {
  kOutOfBounds,        // an access outside every buffer, variable or parameter
  kMisaligned,         // an address that is not a multiple of the access's width
  kUnwrittenRead,      // a use of unwritten bytes that affects the result (undefined_values.h)
  kReadOnlyWrite,      // a store to a read-only buffer or to constant memory
  kSharedRace,         // two threads access one word without a barrier or a release and acquire between them
  kGlobalRace,         // two blocks access one byte without synchronization, at least one access is weak
  kAsyncRead,          // access to memory or registers that an unfinished asynchronous copy or wgmma uses
  kProxyFence,         // generic and asynchronous accesses without fence.proxy between them
  kBarrierDivergence,  // threads of one warp arrive at different barriers
  kDeadlock,           // all remaining threads wait for barriers or mbarriers that no thread can complete
  kWarpSync,           // a .sync instruction with a member mask without its executor, or with lanes that never come
  kRunaway,            // the instruction budget is spent, or a loop no longer changes any state
  kTrap,               // trap, __assertfail, or a call of a function that the device lacks
  kLaunch,             // the launch itself: shared memory, threads, arguments
};
std::string_view name(FindingKind kind);  // "out_of_bounds"

struct Finding {
  FindingKind kind = FindingKind::kTrap;
  std::string message;  // what happened, in words
  std::string kernel;
  int ptx_line = 0;         // 1-based; 0: no single instruction
  std::string instruction;  // the instruction's opcode
  std::string source_file;  // file of the .loc directive; "" without one
  int source_line = 0;
  Dim3 block, thread;         // the first thread with the finding, in grid order
  std::uint64_t address = 0;  // within its space
  std::string buffer;         // name of the buffer or variable
  std::uint64_t count = 1;    // number of occurrences at this instruction
};

enum class InstructionClass : std::uint8_t {
  kInteger,
  kFloat32,
  kFloat64,
  kHalf,
  kSpecialFunction,
  kConvert,
  kMove,
  kLoadStore,
  kAtomic,
  kWarp,
  kBarrier,
  kControl,
  kTensor,
  kOther,
};
inline constexpr std::size_t kInstructionClasses = static_cast<std::size_t>(InstructionClass::kOther) + 1;
std::string_view name(InstructionClass instruction_class);  // "float32"

inline constexpr std::uint64_t kSmallBuffer = 1 << 20;

struct Counters {
  std::array<std::uint64_t, kInstructionClasses> warp_instructions{}, lane_instructions{};
  std::uint64_t sectors_read = 0, sectors_written = 0;  // 32-byte sectors of global memory, counted for every access
  std::uint64_t distinct_sectors_read = 0, distinct_sectors_written = 0;  // each sector counted once per launch
  // Sectors of buffers under kSmallBuffer bytes, which stay in caches: per access, and each once per launch.
  std::uint64_t small_sectors_read = 0, distinct_small_sectors_read = 0;
  std::uint64_t bytes_read = 0, bytes_written = 0;               // sums over the lanes' accesses
  std::uint64_t global_requests = 0;                             // warp-wide loads, stores and atomics of global memory
  std::uint64_t shared_requests = 0, shared_bank_conflicts = 0;  // conflicts: passes beyond the fewest possible
  std::uint64_t tensor_multiply_adds = 0;
  std::uint64_t barriers = 0;  // completed block barriers
  std::uint64_t blocks = 0, warps = 0;

  std::uint64_t requested_bytes() const { return 32 * (sectors_read + sectors_written); }
  std::uint64_t small_requested_bytes() const { return 32 * small_sectors_read; }
  std::uint64_t small_distinct_bytes() const { return 32 * distinct_small_sectors_read; }
  std::uint64_t distinct_bytes() const { return 32 * (distinct_sectors_read + distinct_sectors_written); }
  Counters& operator+=(const Counters& other);
};

struct Report {
  std::vector<Finding> findings;  // by PTX line
  Counters counters;
  std::uint64_t grid_blocks = 0;
  bool sampled = false;  // true if only counters.blocks of them ran
};

Report run(const Module& module, const Launch& launch, Memory& memory, const Options& options = {});

// One line per finding, in the style of compiler messages.
std::string describe(const Finding& finding);
std::string describe(const Report& report);

}  // namespace fusec::emulator
