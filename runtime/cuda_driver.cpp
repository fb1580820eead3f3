#include "runtime/cuda_driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <type_traits>
#include <utility>

#include "ir/error.h"

namespace fusec {
namespace {

constexpr int kMajor = 75, kMinor = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*

// Loads the machine's driver, or for tests the stand-in with the absolute path in FUSEC_CUDA_DRIVER.
void* open_driver(const char* hint) {
  const char* chosen = std::getenv("FUSEC_CUDA_DRIVER");
  const std::string name = chosen && *chosen == '/' ? chosen : "libcuda.so.1";
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    throw Error(ErrorKind::kEnvironment, Error::Parts{.what = "no CUDA driver (" + name + ")", .hint = hint});
  return library;
}

CudaDriver load_driver(const char* hint) {
  void* library = open_driver(hint);
  CudaDriver d{};
  auto bind = [&](auto& function, const char* symbol) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, symbol));
    if (!function) throw Error(ErrorKind::kEnvironment, std::string("the CUDA driver lacks ") + symbol);
  };
  bind(d.init, "cuInit");
  bind(d.version, "cuDriverGetVersion");
  bind(d.error_text, "cuGetErrorString");
  bind(d.device_count, "cuDeviceGetCount");
  bind(d.device_get, "cuDeviceGet");
  bind(d.device_name, "cuDeviceGetName");
  bind(d.device_memory, "cuDeviceTotalMem_v2");
  bind(d.attribute, "cuDeviceGetAttribute");
  bind(d.retain, "cuDevicePrimaryCtxRetain");
  bind(d.release, "cuDevicePrimaryCtxRelease_v2");
  bind(d.push, "cuCtxPushCurrent_v2");
  bind(d.pop, "cuCtxPopCurrent_v2");
  bind(d.current_device, "cuCtxGetDevice");
  bind(d.load, "cuModuleLoadData");
  bind(d.unload, "cuModuleUnload");
  bind(d.function, "cuModuleGetFunction");
  bind(d.function_attribute, "cuFuncSetAttribute");
  bind(d.blocks_at_once, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  bind(d.allocate, "cuMemAlloc_v2");
  bind(d.free, "cuMemFree_v2");
  bind(d.to_device, "cuMemcpyHtoD_v2");
  bind(d.to_host, "cuMemcpyDtoH_v2");
  bind(d.fill, "cuMemsetD8Async");
  bind(d.device_copy, "cuMemcpyDtoDAsync_v2");
  bind(d.launch, "cuLaunchKernel");
  bind(d.synchronize, "cuCtxSynchronize");
  bind(d.stream_create, "cuStreamCreate");
  bind(d.stream_destroy, "cuStreamDestroy_v2");
  bind(d.stream_synchronize, "cuStreamSynchronize");
  bind(d.begin_capture, "cuStreamBeginCapture_v2");
  bind(d.end_capture, "cuStreamEndCapture");
  bind(d.graph_instantiate, "cuGraphInstantiateWithFlags");
  bind(d.graph_launch, "cuGraphLaunch");
  bind(d.graph_exec_destroy, "cuGraphExecDestroy");
  bind(d.graph_destroy, "cuGraphDestroy");
  bind(d.event_create, "cuEventCreate");
  bind(d.event_record, "cuEventRecord");
  bind(d.event_synchronize, "cuEventSynchronize");
  bind(d.event_elapsed, "cuEventElapsedTime");
  bind(d.event_destroy, "cuEventDestroy_v2");
  d.encode_tiled = reinterpret_cast<decltype(d.encode_tiled)>(dlsym(library, "cuTensorMapEncodeTiled"));
  const int status = d.init(0);
  const char* text = nullptr;
  if (status == 0) return d;
  d.error_text(status, &text);
  throw Error(ErrorKind::kEnvironment, Error::Parts{.what = "the CUDA driver does not start",
                                                    .found = text ? text : "CUDA error " + std::to_string(status),
                                                    .hint = hint});
}

}  // namespace

const CudaDriver& CudaDriver::require(const char* hint) {
  static const CudaDriver driver = load_driver(hint);  // tried again after a throw
  return driver;
}

void CudaDriver::check(int status, const std::string& what) const {
  if (status == 0) return;
  const char* text = nullptr;
  error_text(status, &text);
  throw Error(ErrorKind::kEnvironment,
              Error::Parts{.what = what, .found = text ? text : "CUDA error " + std::to_string(status)});
}

std::string architecture_of(const CudaDriver& driver, int device) {
  int handle = 0, major = 0, minor = 0;
  driver.check(driver.device_get(&handle, device), "no CUDA device " + std::to_string(device));
  driver.check(driver.attribute(&major, kMajor, handle), "the device's compute capability");
  driver.check(driver.attribute(&minor, kMinor, handle), "the device's compute capability");
  return fmt::format("sm_{}{}{}", major, minor, major >= 9 ? "a" : "");
}

CudaContext::CudaContext(const CudaDriver& driver, int device) : driver_(driver) {
  driver.check(driver.device_get(&device_, device), "no CUDA device " + std::to_string(device));
  driver.check(driver.retain(&context_, device_), "the CUDA device cannot be used");
}

CudaContext::~CudaContext() {
  driver_.release(device_);
}

CurrentContext::CurrentContext(const CudaContext& context) : driver_(context.driver()) {
  driver_.check(driver_.push(context.handle()), "the CUDA device cannot be used");
}

CurrentContext::~CurrentContext() {
  CudaHandle context = nullptr;
  driver_.pop(&context);
}

DeviceBuffer::DeviceBuffer(const CudaDriver& driver, std::size_t bytes) : driver_(&driver), bytes_(bytes) {
  driver.check(driver.allocate(&address_, std::max<std::size_t>(bytes, 16)),
               fmt::format("{} bytes of device memory", bytes));
}

DeviceBuffer::~DeviceBuffer() {
  if (address_) driver_->free(address_);
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : driver_(other.driver_), address_(std::exchange(other.address_, 0)), bytes_(other.bytes_) {}

}  // namespace fusec
