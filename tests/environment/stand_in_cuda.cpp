// A stand-in of the CUDA driver for tests without a GPU, in FUSEC_CUDA_DRIVER: device memory is the PTX emulator's, and
// modules are the PTX that they are loaded from (a cubin is refused as one for another GPU). Kernels are executed at
// once, on whichever stream; a stream that is captured records them. What the driver would refuse without a current
// context is refused.
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "ir/error.h"
#include "runtime/emulator/emulator.h"
#include "runtime/emulator/tensor_map.h"

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
};
using Work = std::function<Status()>;
using Graph = std::vector<Work>;
struct Stream {
  std::unique_ptr<Graph> captured;
};

struct Gpu {
  std::mutex mutex;
  Memory memory;
  std::map<Pointer, std::vector<std::byte>> bytes;  // by the buffers' numbers
  std::map<Pointer, Memory::Id> ids;
  std::vector<std::unique_ptr<Function>> functions;
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

Status launch(const Function& function, const fusec::emulator::Launch& launch) {
  try {
    const auto report = fusec::emulator::run(function.module->code, launch, gpu().memory, {});
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
  return *value = attribute == 75 ? 8 : 0, kGood;
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
  return *module = new Module{fusec::emulator::Module(text, "module")}, kGood;
}
EXPORT Status cuModuleUnload(Handle module) {
  return delete static_cast<Module*>(module), kGood;
}
EXPORT Status cuModuleGetFunction(Handle* function, Handle module, const char* name) {
  const auto* of = static_cast<Module*>(module);
  for (const std::string& kernel : of->code.kernels()) {
    if (kernel != name) continue;
    gpu().functions.push_back(std::make_unique<Function>(Function{of, name, of->code.kernel(name).parameter_bytes}));
    return *function = gpu().functions.back().get(), kGood;
  }
  return kNotFound;
}
EXPORT Status cuFuncSetAttribute(Handle, int, int) {
  return kGood;
}

EXPORT Status cuMemAlloc_v2(Pointer* address, std::size_t count) {
  if (contexts == 0) return kNoContext;
  if (count > std::size_t{1} << 30) return kNoMemory;
  const std::scoped_lock lock(gpu().mutex);
  std::vector<std::byte> bytes(count);
  const Memory::Id id = gpu().memory.add({.name = "device memory", .bytes = bytes, .initialized = false});
  *address = gpu().memory.address(id);
  gpu().ids[*address >> kAddressBits] = id;
  gpu().bytes[*address >> kAddressBits] = std::move(bytes);
  return kGood;
}
EXPORT Status cuMemFree_v2(Pointer address) {
  const std::scoped_lock lock(gpu().mutex);
  gpu().memory.remove(gpu().ids.at(address >> kAddressBits));
  gpu().bytes.erase(address >> kAddressBits);
  return kGood;
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
  fusec::emulator::Launch call{
      .kernel = f.name, .grid = {gx, gy, gz}, .block = {bx, by, bz}, .dynamic_shared_bytes = shared, .arguments = {}};
  for (std::size_t i = 0; i < f.parameter_bytes.size(); ++i) {
    const auto* bytes = static_cast<const std::byte*>(parameters[i]);
    call.arguments.emplace_back(bytes, bytes + f.parameter_bytes[i]);
  }
  return run_or_record(stream, [&f, call = std::move(call)] { return launch(f, call); });
}

EXPORT Status cuTensorMapEncodeTiled(void* map, int type, unsigned rank, Pointer address, const std::uint64_t* extents,
                                     const std::uint64_t* strides, const unsigned* box, const unsigned*, int,
                                     int swizzle, int, int) {
  fusec::emulator::TensorMap encoded{.address = address, .element_bytes = 1u << type, .rank = rank};
  encoded.swizzle = swizzle == 0 ? 0 : 16u << swizzle;
  encoded.strides[0] = encoded.element_bytes;
  for (unsigned d = 0; d < rank; ++d) {
    encoded.extents[d] = extents[d];
    encoded.box[d] = box[d];
    if (d > 0) encoded.strides[d] = strides[d - 1];
  }
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
