// A stand-in of the CUDA driver for tests without a GPU, in FUSEC_CUDA_DRIVER: device memory is the PTX emulator's, and
// modules are the PTX that they are loaded from (a cubin is refused as one for another GPU). Kernels are executed at
// once, on whichever stream; a stream that is captured records them. What the driver would refuse without a current
// context is refused.
//
//   STAND_IN_CAPABILITY=90         the device's compute capability (80)
//   STAND_IN_PLANT=wrong=NAME@N    from the N-th launch on (1 without @) of a kernel with NAME in its name, the first
//                                  element of its last operand is wrong; empty=: it does nothing; fail=: it ends with
//                                  an error; hang=: it never ends
//
// Host memory that is registered is device memory too, so PyTorch's CPU tensors can be operands
// (tests/gpu/stand_in_torch/torch.py). Host parts that are compiled against runtime/host_part/stand_in launch through
// `fusec_stand_in_runtime` (tests/gpu/stand_in_nvcc.py).
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "ir/error.h"
#include "runtime/emulator/emulator.h"
#include "runtime/emulator/tensor_map.h"
#include "runtime/host_part/stand_in/recorded_runtime.h"

namespace {

using fusec::emulator::Memory;
using Status = int;
using Handle = void*;
using Pointer = unsigned long long;

constexpr Status kGood = 0, kInvalidValue = 1, kNoMemory = 2, kNoContext = 201, kNoBinary = 209, kNotFound = 500,
                 kLaunchFailed = 719;
constexpr int kAddressBits = 36;  // of a buffer's own

struct Module {
  fusec::emulator::Module code;
};
struct Function {
  const Module* module;
  std::string name;
  std::vector<std::size_t> parameter_bytes;
  std::uint64_t static_shared_bytes = 0;
};
using Work = std::function<Status()>;
using Graph = std::vector<Work>;
struct Stream {
  std::unique_ptr<Graph> captured;
};

struct Gpu {
  std::mutex mutex;
  Memory memory;
  std::map<Pointer, std::vector<std::byte>> owned;  // by the buffers' numbers, as are the next two
  std::map<Pointer, std::span<std::byte>> bytes;
  std::map<Pointer, Memory::Id> ids;
  std::map<const void*, Pointer> registered;  // host memory
  std::vector<std::unique_ptr<Function>> functions;
  std::vector<Module*> modules;
  std::map<std::string, std::uint64_t> most_dynamic_shared;  // by kernel: what cuFuncSetAttribute allows
  int launches = 0;                                          // of the kernel that STAND_IN_PLANT names
};

Gpu& gpu() {
  static Gpu instance;
  return instance;
}
thread_local int contexts = 0;  // of this thread

// The bytes from an address on; null where there are not as many.
std::byte* host(Pointer address, std::size_t count, bool written) {
  const auto found = gpu().bytes.find(address >> kAddressBits);
  if (found == gpu().bytes.end()) return nullptr;
  const Memory::Id id = gpu().ids.at(found->first);
  const std::uint64_t offset = address - gpu().memory.address(id);
  if (offset + count > found->second.size()) return nullptr;
  if (written) gpu().memory.mark_written(id, offset, count);
  return found->second.data() + offset;
}

Status run_or_record(Handle stream, Work work) {
  if (contexts == 0) return kNoContext;
  if (stream && static_cast<Stream*>(stream)->captured) {
    static_cast<Stream*>(stream)->captured->push_back(std::move(work));
    return kGood;
  }
  const std::scoped_lock lock(gpu().mutex);
  return work();
}

Pointer add_buffer(std::span<std::byte> bytes, bool initialized) {
  const Memory::Id id = gpu().memory.add({.name = "device memory", .bytes = bytes, .initialized = initialized});
  const Pointer address = gpu().memory.address(id);
  gpu().ids[address >> kAddressBits] = id;
  gpu().bytes[address >> kAddressBits] = bytes;
  return address;
}

void remove_buffer(Pointer address) {
  gpu().memory.remove(gpu().ids.at(address >> kAddressBits));
  gpu().bytes.erase(address >> kAddressBits);
  gpu().owned.erase(address >> kAddressBits);
}

// What STAND_IN_PLANT does to this launch: "wrong", "empty", "fail", "hang" or "".
std::string planted(const std::string& kernel) {
  const char* const given = std::getenv("STAND_IN_PLANT");
  const std::string plant = given ? given : "";
  const std::size_t equals = plant.find('='), at = plant.find('@');
  if (equals == std::string::npos || kernel.find(plant.substr(equals + 1, at - equals - 1)) == std::string::npos)
    return "";
  const int first = at == std::string::npos ? 1 : std::atoi(plant.c_str() + at + 1);
  return ++gpu().launches >= first ? plant.substr(0, equals) : "";
}

void spoil_last_operand(const fusec::emulator::Launch& launch) {
  for (auto argument = launch.arguments.rbegin(); argument != launch.arguments.rend(); ++argument) {
    Pointer address = 0;
    if (argument->size() != sizeof address) continue;
    std::memcpy(&address, argument->data(), sizeof address);
    if (std::byte* const first = host(address, 2, true)) return void(first[1] ^= std::byte{0x40});
  }
}

int capability() {
  const char* const given = std::getenv("STAND_IN_CAPABILITY");
  return given ? std::atoi(given) : 80;
}

Status launch(const Function& function, const fusec::emulator::Launch& launch) {
  const std::string plant = planted(function.name);
  if (plant == "empty") return kGood;
  if (plant == "fail") return kLaunchFailed;
  while (plant == "hang") pause();
  try {
    const auto report = fusec::emulator::run(function.module->code, launch, gpu().memory, {});
    if (plant == "wrong") spoil_last_operand(launch);
    if (report.findings.empty()) return kGood;
    std::fputs(fusec::emulator::describe(report).c_str(), stderr);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  return kLaunchFailed;
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT Status cuInit(unsigned) {
  return kGood;
}
EXPORT Status cuDriverGetVersion(int* version) {
  return *version = 13000, kGood;
}
EXPORT Status cuGetErrorString(Status status, const char** text) {
  static thread_local std::string told;
  told = "stand-in error " + std::to_string(status);
  return *text = told.c_str(), kGood;
}
EXPORT Status cuDeviceGetCount(int* count) {
  return *count = 1, kGood;
}
EXPORT Status cuDeviceGet(int* device, int ordinal) {
  return *device = ordinal, ordinal == 0 ? kGood : 101;
}
EXPORT Status cuDeviceGetName(char* name, int size, int) {
  return std::snprintf(name, size, "stand-in"), kGood;
}
EXPORT Status cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  return *bytes = std::size_t{1} << 30, kGood;
}
EXPORT Status cuDeviceGetAttribute(int* value, int attribute, int) {
  constexpr int kMultiprocessors = 16, kMajor = 75, kMinor = 76;  // CU_DEVICE_ATTRIBUTE_*
  *value = attribute == kMultiprocessors ? 132
           : attribute == kMajor         ? capability() / 10
           : attribute == kMinor         ? capability() % 10
                                         : 0;
  return kGood;
}
EXPORT Status cuDevicePrimaryCtxRetain(Handle* context, int) {
  return *context = &gpu(), kGood;
}
EXPORT Status cuDevicePrimaryCtxRelease_v2(int) {
  return kGood;
}
EXPORT Status cuCtxPushCurrent_v2(Handle) {
  return ++contexts, kGood;
}
EXPORT Status cuCtxPopCurrent_v2(Handle* context) {
  return *context = &gpu(), contexts-- > 0 ? kGood : kNoContext;
}
EXPORT Status cuCtxSynchronize() {
  return contexts > 0 ? kGood : kNoContext;
}

EXPORT Status cuModuleLoadData(Handle* module, const void* image) {
  const auto* text = static_cast<const char*>(image);
  if (std::memcmp(text, "\177ELF", 4) == 0) return kNoBinary;
  auto* const made = new Module{fusec::emulator::Module(text, "module")};
  gpu().modules.push_back(made);
  return *module = made, kGood;
}
EXPORT Status cuModuleUnload(Handle module) {
  std::erase(gpu().modules, static_cast<Module*>(module));
  return delete static_cast<Module*>(module), kGood;
}
EXPORT Status cuModuleGetFunction(Handle* function, Handle module, const char* name) {
  const auto* of = static_cast<Module*>(module);
  for (const std::string& kernel : of->code.kernels()) {
    if (kernel != name) continue;
    gpu().functions.push_back(std::make_unique<Function>(
        Function{of, name, of->code.kernel(name).parameter_bytes, of->code.kernel(name).static_shared_bytes}));
    return *function = gpu().functions.back().get(), kGood;
  }
  return kNotFound;
}
EXPORT Status cuFuncSetAttribute(Handle function, int attribute, int value) {
  if (attribute != 8) return kInvalidValue;  // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
  gpu().most_dynamic_shared[static_cast<Function*>(function)->name] = static_cast<std::uint64_t>(value);
  return kGood;
}
EXPORT Status cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Handle, int, std::size_t) {
  return *blocks = 1, kGood;
}
EXPORT Status cuCtxGetDevice(int* device) {
  return *device = 0, contexts > 0 ? kGood : kNoContext;
}

EXPORT Status cuMemAlloc_v2(Pointer* address, std::size_t count) {
  if (contexts == 0) return kNoContext;
  if (count > std::size_t{1} << 30) return kNoMemory;
  const std::scoped_lock lock(gpu().mutex);
  std::vector<std::byte> bytes(count);
  *address = add_buffer(bytes, false);
  gpu().owned[*address >> kAddressBits] = std::move(bytes);
  return kGood;
}
EXPORT Status cuMemFree_v2(Pointer address) {
  const std::scoped_lock lock(gpu().mutex);
  return remove_buffer(address), kGood;
}
EXPORT Status cuMemHostRegister_v2(void* memory, std::size_t count, unsigned) {
  const std::scoped_lock lock(gpu().mutex);
  gpu().registered[memory] = add_buffer({static_cast<std::byte*>(memory), count}, true);
  return kGood;
}
EXPORT Status cuMemHostGetDevicePointer_v2(Pointer* address, void* memory, unsigned) {
  const auto found = gpu().registered.find(memory);
  return found == gpu().registered.end() ? kInvalidValue : (*address = found->second, kGood);
}
EXPORT Status cuMemHostUnregister(void* memory) {
  const std::scoped_lock lock(gpu().mutex);
  return remove_buffer(gpu().registered.at(memory)), gpu().registered.erase(memory), kGood;
}
EXPORT Status cuMemsetD8Async(Pointer to, unsigned char value, std::size_t count, Handle stream) {
  return run_or_record(stream, [=] {
    std::byte* const target = host(to, count, true);
    return target ? (std::memset(target, value, count), kGood) : kInvalidValue;
  });
}
EXPORT Status cuMemcpyHtoD_v2(Pointer to, const void* from, std::size_t count) {
  const std::scoped_lock lock(gpu().mutex);
  std::byte* const target = host(to, count, true);
  return target ? (std::memcpy(target, from, count), kGood) : kInvalidValue;
}
EXPORT Status cuMemcpyDtoH_v2(void* to, Pointer from, std::size_t count) {
  const std::scoped_lock lock(gpu().mutex);
  const std::byte* const source = host(from, count, false);
  return source ? (std::memcpy(to, source, count), kGood) : kInvalidValue;
}
EXPORT Status cuMemcpyDtoDAsync_v2(Pointer to, Pointer from, std::size_t count, Handle stream) {
  return run_or_record(stream, [=] {
    const std::byte* const source = host(from, count, false);
    std::byte* const target = host(to, count, true);
    return source && target ? (std::memmove(target, source, count), kGood) : kInvalidValue;
  });
}

EXPORT Status cuLaunchKernel(Handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                             unsigned bz, unsigned shared, Handle stream, void** parameters, void**) {
  const auto& f = *static_cast<Function*>(function);
  constexpr std::uint64_t kSharedBytes = 48 * 1024;  // static and dynamic, without cuFuncSetAttribute
  if (f.static_shared_bytes + shared > kSharedBytes && shared > gpu().most_dynamic_shared[f.name]) return kInvalidValue;
  fusec::emulator::Launch call{
      .kernel = f.name, .grid = {gx, gy, gz}, .block = {bx, by, bz}, .dynamic_shared_bytes = shared, .arguments = {}};
  for (std::size_t i = 0; i < f.parameter_bytes.size(); ++i) {
    const auto* bytes = static_cast<const std::byte*>(parameters[i]);
    call.arguments.emplace_back(bytes, bytes + f.parameter_bytes[i]);
  }
  return run_or_record(stream, [&f, call = std::move(call)] { return launch(f, call); });
}

EXPORT Status cuTensorMapEncodeTiled(void* map, int type, unsigned rank, Pointer address, const std::uint64_t* extents,
                                     const std::uint64_t* strides, const unsigned* box, const unsigned* steps, int,
                                     int swizzle, int, int) {
  if (rank < 1 || rank > 5) return kInvalidValue;
  fusec::emulator::TensorMap encoded{.address = address, .element_bytes = 1u << type, .rank = rank};
  encoded.swizzle = swizzle == 0 ? 0 : 16u << swizzle;
  encoded.strides[0] = encoded.element_bytes;
  for (unsigned d = 0; d < rank; ++d) {
    encoded.extents[d] = extents[d];
    encoded.box[d] = box[d];
    encoded.element_strides[d] = steps[d];
    if (d > 0) encoded.strides[d] = strides[d - 1];
  }
  if (!fusec::emulator::tensor_map_fault(encoded).empty()) return kInvalidValue;
  const std::vector<std::byte> bytes = fusec::emulator::encode_tensor_map(encoded);
  return std::memcpy(map, bytes.data(), bytes.size()), kGood;
}

EXPORT Status cuStreamCreate(Handle* stream, unsigned) {
  return *stream = new Stream, kGood;
}
EXPORT Status cuStreamDestroy_v2(Handle stream) {
  return delete static_cast<Stream*>(stream), kGood;
}
EXPORT Status cuStreamSynchronize(Handle) {
  return contexts > 0 ? kGood : kNoContext;
}
EXPORT Status cuStreamBeginCapture_v2(Handle stream, int) {
  return static_cast<Stream*>(stream)->captured = std::make_unique<Graph>(), kGood;
}
EXPORT Status cuStreamEndCapture(Handle stream, Handle* graph) {
  return *graph = static_cast<Stream*>(stream)->captured.release(), kGood;
}
EXPORT Status cuGraphInstantiateWithFlags(Handle* executable, Handle graph, unsigned long long) {
  return *executable = new Graph(*static_cast<Graph*>(graph)), kGood;
}
EXPORT Status cuGraphLaunch(Handle executable, Handle) {
  if (contexts == 0) return kNoContext;
  const std::scoped_lock lock(gpu().mutex);
  for (const Work& work : *static_cast<Graph*>(executable))
    if (const Status status = work(); status != kGood) return status;
  return kGood;
}
EXPORT Status cuGraphExecDestroy(Handle executable) {
  return delete static_cast<Graph*>(executable), kGood;
}
EXPORT Status cuGraphDestroy(Handle graph) {
  return delete static_cast<Graph*>(graph), kGood;
}
EXPORT Status cuEventCreate(Handle* event, unsigned) {
  return *event = &gpu(), kGood;
}
EXPORT Status cuEventRecord(Handle, Handle) {
  return kGood;
}
EXPORT Status cuEventSynchronize(Handle) {
  return kGood;
}
EXPORT Status cuEventElapsedTime(float* milliseconds, Handle, Handle) {
  return *milliseconds = 1, kGood;
}
EXPORT Status cuEventDestroy_v2(Handle) {
  return kGood;
}

// The CUDA runtime of a host part: kernels are found by the names of their empty functions in the modules that are
// loaded.
namespace {

Handle function_of(const void* kernel) {
  Dl_info info{};
  Handle function = nullptr;
  if (!dladdr(kernel, &info) || !info.dli_sname) return nullptr;
  for (Module* const module : gpu().modules)
    if (cuModuleGetFunction(&function, module, info.dli_sname) == kGood) return function;
  return nullptr;
}

int runtime_launch(void*, const void* kernel, const unsigned* grid, const unsigned* block, void** arguments,
                   std::size_t shared_bytes, const void* stream) {
  const Handle function = function_of(kernel);
  if (!function) return kNotFound;
  return cuLaunchKernel(function, grid[0], grid[1], grid[2], block[0], block[1], block[2],
                        static_cast<unsigned>(shared_bytes), const_cast<Handle>(stream), arguments, nullptr);
}

int runtime_copy(void*, void* to, const void* from, std::size_t bytes, int, const void* stream) {
  const auto number = [](const void* pointer) { return reinterpret_cast<Pointer>(pointer); };
  return cuMemcpyDtoDAsync_v2(number(to), number(from), bytes, const_cast<Handle>(stream));
}

int runtime_attribute(void*, const void* kernel, int attribute, int value) {
  const Handle function = function_of(kernel);
  return function ? cuFuncSetAttribute(function, attribute, value) : kNotFound;
}

int runtime_tensor_map(void*, void* map, int element_bytes, unsigned rank, const void* address,
                       const unsigned long long* extents, const unsigned long long* strides, const unsigned* box) {
  const unsigned steps[] = {1, 1, 1, 1, 1}, line = box[0] * static_cast<unsigned>(element_bytes);
  const std::vector<std::uint64_t> e(extents, extents + rank), s(strides, strides + rank - 1);
  return cuTensorMapEncodeTiled(map, element_bytes / 2, rank, reinterpret_cast<Pointer>(address), e.data(), s.data(),
                                box, steps, 0,
                                line == 128  ? 3
                                : line == 64 ? 2
                                : line == 32 ? 1
                                             : 0,
                                0, 0);
}

}  // namespace

// No constants in the file, launchers, library calls or collectives: those fields are null.
extern "C" __attribute__((visibility("default")))
const fusec_recorded_runtime fusec_stand_in_runtime = {.recorder = nullptr,
                                                       .multiprocessors = 132,
                                                       .capability_major = capability() / 10,
                                                       .launch = runtime_launch,
                                                       .copy = runtime_copy,
                                                       .symbol_address = nullptr,
                                                       .set_attribute = runtime_attribute,
                                                       .external = nullptr,
                                                       .product = nullptr,
                                                       .collective = nullptr,
                                                       .group = nullptr,
                                                       .tensor_map = runtime_tensor_map};
