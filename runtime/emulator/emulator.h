// Executes PTX on the CPU as a CUDA device would, and says what the kernel touched.
//
//   emulator::Module module(ptx_text, "out.ptx");            // parsed once, decoded once a kernel, reused
//   emulator::Memory memory;                                 // the device's memory; carries "written" from launch to
//   launch auto x = memory.add({.name = "x", .bytes = x_bytes, .initialized = true, .writable = false}); auto y =
//   memory.add({.name = "y", .bytes = y_bytes, .initialized = false}); emulator::Launch launch{.kernel = "model_0_add",
//   .grid = {64}, .block = {256},
//                           .arguments = {emulator::pointer_argument(memory, x), emulator::pointer_argument(memory, y),
//                                         emulator::scalar_argument<int>(n)}};
//   emulator::Report report = emulator::run(module, launch, memory, {});
//   if (!report.findings.empty()) puts(emulator::describe(report).c_str());
//
// Buffers are host memory that the caller keeps alive; the kernel reads and writes it in place. An arena with several
// values in it is added as several buffers (each gets its own address range with guards around it) or as one.
// Checks are always on: see FindingKind. A kernel with findings still runs as far as it can: a bad load gives 0, a bad
// store is dropped. An instruction that the emulator does not know throws fusec::Error, naming it and its line.
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
  std::uint64_t local_bytes = 0;  // a thread
};

// A PTX file. Copies share what was parsed.
class Module {
 public:
  // Throws Error (kInput) that names file and line.
  Module(std::string_view ptx, const std::string& file);
  std::vector<std::string> kernels() const;
  // Throws Error where the kernel does not exist or uses an instruction that is not known.
  KernelInfo kernel(std::string_view name) const;

  const std::shared_ptr<ModuleData>& data() const { return data_; }

 private:
  std::shared_ptr<ModuleData> data_;
};

struct Buffer {
  std::string name;
  std::span<std::byte> bytes;
  bool initialized = true;  // else using a byte before it was written is a finding
  bool writable = true;     // else writing is a finding
};

// The buffers of a device and which of their bytes have been written; also the modules' own variables.
class Memory {
 public:
  using Id = std::uint32_t;
  Memory();
  ~Memory();
  Memory(Memory&&) noexcept;
  Memory& operator=(Memory&&) noexcept;

  Id add(Buffer buffer);
  // The device address of a byte of a buffer. Buffers lie gigabytes apart, so that no small error reaches another one.
  std::uint64_t address(Id id, std::int64_t offset = 0) const;
  const Buffer& buffer(Id id) const;
  // Marks bytes as written (the host filled them) or as never written (the arena's place was given to another value).
  void mark_written(Id id, std::size_t offset, std::size_t bytes);
  void mark_unwritten(Id id, std::size_t offset, std::size_t bytes);
  // Another value has the buffer from now on, which the last launch wrote into it: what that left is unwritten.
  void take_over(Id id, std::string name);
  // The buffer's lifetime is over: whoever touches it from now on is out of its bounds. Its address is not given again.
  void remove(Id id);
  // The first byte from `offset` on that nobody has written.
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
  Dim3 cluster{0, 0, 0};              // zeros: as the kernel demands, else no cluster
  std::uint64_t resident_blocks = 1;  // any so many blocks wait for one another: a sample has whole cohorts
  std::uint32_t dynamic_shared_bytes = 0;
  std::vector<Argument> arguments;  // one a parameter, as long as the parameter
};

struct Options {
  int threads = 1;  // host threads that execute blocks
  // Warp instructions a block may execute, but for turns in which it only waits for others; the first block that needs
  // more ends the launch (kRunaway). What is known to wait for ever needs none of it.
  // Those that take longer to emulate (atomics, barriers, products, bulk copies) count for more.
  std::uint64_t max_instructions = std::uint64_t{1} << 26;
  std::uint64_t max_shared_bytes = 227 * 1024;  // of a block, where the module's .target has as much; more is a finding
  std::size_t max_findings = 32;                // distinct places reported
  bool check_races = true;
  std::uint64_t sample_blocks = 0;  // run only about so many blocks, spread over the grid; 0: all
};

enum class FindingKind : std::uint8_t {
  kOutOfBounds,        // an access outside every buffer, variable or parameter
  kMisaligned,         // an address that is no multiple of the access's width
  kUnwrittenRead,      // bytes that nobody has written, where their value matters (undefined_values.h)
  kReadOnlyWrite,      // a store into a buffer that is an input, or into constant memory
  kSharedRace,         // two threads, one word, neither a barrier nor a release that was acquired between them
  kGlobalRace,         // two blocks, one byte, not both strong, no synchronization
  kAsyncRead,          // memory or registers accessed while an asynchronous copy or wgmma that uses them is under way
  kProxyFence,         // generic and asynchronous accesses without fence.proxy between them
  kBarrierDivergence,  // threads of one warp meet at different barriers
  kDeadlock,           // all threads that are left wait, at barriers or for mbarriers that nobody can complete
  kWarpSync,           // a .sync instruction whose member mask leaves out its executor, or lanes that never come
  kRunaway,            // the instruction budget is spent, or a loop changes nothing any more
  kTrap,               // trap, __assertfail, or a call of something the device lacks
  kLaunch,             // the launch itself: shared memory, threads, arguments
};
std::string_view name(FindingKind kind);  // "out_of_bounds"

struct Finding {
  FindingKind kind = FindingKind::kTrap;
  std::string message;  // what happened, in words
  std::string kernel;
  int ptx_line = 0;         // 1-based; 0: no single instruction
  std::string instruction;  // its opcode
  std::string source_file;  // of .loc, where there is one
  int source_line = 0;
  Dim3 block, thread;         // the first one, in grid order, that shows it
  std::uint64_t address = 0;  // within its space
  std::string buffer;         // the buffer or variable concerned
  std::uint64_t count = 1;    // how often this place showed it
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
  std::uint64_t sectors_read = 0, sectors_written = 0;  // requested 32-byte sectors of global memory, each access anew
  std::uint64_t distinct_sectors_read = 0, distinct_sectors_written = 0;  // each once a launch
  // Of buffers under 1 MiB, which stay in caches: as requested, and each once.
  std::uint64_t small_sectors_read = 0, distinct_small_sectors_read = 0;
  std::uint64_t bytes_read = 0, bytes_written = 0;               // what the lanes asked for
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
  bool sampled = false;  // only counters.blocks of them were run
};

Report run(const Module& module, const Launch& launch, Memory& memory, const Options& options = {});

// One line a finding, as a compiler writes them.
std::string describe(const Finding& finding);
std::string describe(const Report& report);

}  // namespace fusec::emulator
