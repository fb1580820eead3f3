// The CUDA driver, loaded at run time: building and starting fusec need no CUDA.
//
//   const CudaDriver& driver = CudaDriver::require("--device=emulator needs no GPU");
//   const CurrentContext scope(context);   // of this thread, until the end of the scope
//   driver.check(driver.launch(...), "the kernel");
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace fusec {

using DevicePointer = unsigned long long;
using CudaHandle = void*;  // a context, module, function, stream, event or graph

// The entry points of libcuda that fusec uses. Each returns a CUresult.
struct CudaDriver {
  int (*init)(unsigned);
  int (*version)(int*);  // 13000 for CUDA 13.0
  int (*error_text)(int, const char**);
  int (*device_count)(int*);
  int (*device_get)(int*, int);
  int (*device_name)(char*, int, int);
  int (*device_memory)(std::size_t*, int);
  int (*attribute)(int*, int, int);
  int (*retain)(CudaHandle*, int);
  int (*release)(int);
  int (*push)(CudaHandle);
  int (*pop)(CudaHandle*);
  int (*current_device)(int*);
  int (*load)(CudaHandle*, const void*);
  int (*unload)(CudaHandle);
  int (*function)(CudaHandle*, CudaHandle, const char*);
  int (*function_attribute)(CudaHandle, int, int);
  int (*blocks_at_once)(int*, CudaHandle, int, std::size_t);  // of a kernel on a multiprocessor
  int (*allocate)(DevicePointer*, std::size_t);
  int (*free)(DevicePointer);
  int (*to_device)(DevicePointer, const void*, std::size_t);
  int (*to_host)(void*, DevicePointer, std::size_t);
  int (*fill)(DevicePointer, unsigned char, std::size_t, CudaHandle);
  int (*device_copy)(DevicePointer, DevicePointer, std::size_t, CudaHandle);
  int (*launch)(CudaHandle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CudaHandle, void**,
                void**);
  int (*synchronize)();
  int (*stream_create)(CudaHandle*, unsigned);
  int (*stream_destroy)(CudaHandle);
  int (*stream_synchronize)(CudaHandle);
  int (*begin_capture)(CudaHandle, int);
  int (*end_capture)(CudaHandle, CudaHandle*);
  int (*graph_instantiate)(CudaHandle*, CudaHandle, unsigned long long);
  int (*graph_launch)(CudaHandle, CudaHandle);
  int (*graph_exec_destroy)(CudaHandle);
  int (*graph_destroy)(CudaHandle);
  int (*event_create)(CudaHandle*, unsigned);
  int (*event_record)(CudaHandle, CudaHandle);
  int (*event_synchronize)(CudaHandle);
  int (*event_elapsed)(float*, CudaHandle, CudaHandle);
  int (*event_destroy)(CudaHandle);
  // Null where the driver is older than TMA.
  int (*encode_tiled)(void*, int, unsigned, DevicePointer, const std::uint64_t*, const std::uint64_t*, const unsigned*,
                      const unsigned*, int, int, int, int);

  // This process's driver, initialized. Throws Error(kEnvironment) with the hint if there is none.
  static const CudaDriver& require(const char* hint);

  // Throws Error(kEnvironment) with `what` and the driver's message unless the status is 0.
  void check(int status, const std::string& what) const;
};

// "sm_90a" for a device's compute capability (with the suffix from 9.0 on). Throws Error(kEnvironment).
std::string architecture_of(const CudaDriver& driver, int device);

// A device's primary context, which the CUDA runtime and PyTorch use too.
class CudaContext {
 public:
  // Throws Error(kEnvironment) if there is no such device.
  CudaContext(const CudaDriver& driver, int device);
  ~CudaContext();
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;

  const CudaDriver& driver() const { return driver_; }
  CudaHandle handle() const { return context_; }

 private:
  const CudaDriver& driver_;
  int device_ = 0;
  CudaHandle context_ = nullptr;
};

// Makes a context current in this thread for a scope; the previous one is current again afterwards.
class CurrentContext {
 public:
  explicit CurrentContext(const CudaContext& context);
  ~CurrentContext();
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

 private:
  const CudaDriver& driver_;
};

// An owned block of device memory. Its context must be current when it is created and destroyed.
class DeviceBuffer {
 public:
  // Throws Error(kEnvironment) if there is not enough memory.
  DeviceBuffer(const CudaDriver& driver, std::size_t bytes);
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&&) = delete;

  DevicePointer address() const { return address_; }
  std::size_t bytes() const { return bytes_; }

 private:
  const CudaDriver* driver_;
  DevicePointer address_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace fusec
