// The CUDA driver, loaded at run time: the program builds and starts where there is none.
#include <dlfcn.h>

#include <stdexcept>
#include <type_traits>

#include "gpu/launch.h"

namespace fusec::gpu_test {
namespace {

using Handle = void*;
using DevicePointer = unsigned long long;

struct Driver {
  int (*init)(unsigned);
  int (*count)(int*);
  int (*get)(int*, int);
  int (*name)(char*, int, int);
  int (*attribute)(int*, int, int);
  int (*retain)(Handle*, int);
  int (*set_current)(Handle);
  int (*error_text)(int, const char**);
  int (*load)(Handle*, const void*);
  int (*unload)(Handle);
  int (*function)(Handle*, Handle, const char*);
  int (*allocate)(DevicePointer*, std::size_t);
  int (*free)(DevicePointer);
  int (*to_device)(DevicePointer, const void*, std::size_t);
  int (*to_host)(void*, DevicePointer, std::size_t);
  int (*launch)(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void**, void**);
  int (*synchronize)();
};

// False where the library or one of its functions is missing.
bool load_driver(Driver& driver) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return false;
  bool all = true;
  const auto bind = [&](auto& function, const char* symbol) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, symbol));
    all = all && function != nullptr;
  };
  bind(driver.init, "cuInit");
  bind(driver.count, "cuDeviceGetCount");
  bind(driver.get, "cuDeviceGet");
  bind(driver.name, "cuDeviceGetName");
  bind(driver.attribute, "cuDeviceGetAttribute");
  bind(driver.retain, "cuDevicePrimaryCtxRetain");
  bind(driver.set_current, "cuCtxSetCurrent");
  bind(driver.error_text, "cuGetErrorString");
  bind(driver.load, "cuModuleLoadData");
  bind(driver.unload, "cuModuleUnload");
  bind(driver.function, "cuModuleGetFunction");
  bind(driver.allocate, "cuMemAlloc_v2");
  bind(driver.free, "cuMemFree_v2");
  bind(driver.to_device, "cuMemcpyHtoD_v2");
  bind(driver.to_host, "cuMemcpyDtoH_v2");
  bind(driver.launch, "cuLaunchKernel");
  bind(driver.synchronize, "cuCtxSynchronize");
  return all;
}

constexpr int kMajor = 75, kMinor = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*

class CudaExecutor : public Executor {
 public:
  explicit CudaExecutor(const Driver& driver) : driver_(driver) {
    int device = 0, major = 0, minor = 0;
    check(driver_.get(&device, 0), "device");
    check(driver_.attribute(&major, kMajor, device), "capability");
    check(driver_.attribute(&minor, kMinor, device), "capability");
    capability_ = 10 * major + minor;
    char text[128] = {};
    check(driver_.name(text, sizeof(text), device), "name");
    name_ = text;
    check(driver_.retain(&context_, device), "context");
    check(driver_.set_current(context_), "context");
  }
  std::string name() const override { return name_; }
  int capability() const override { return capability_; }

  std::vector<std::uint32_t> run(const TestLaunch& launch) override {
    Handle module = nullptr, function = nullptr;
    check(driver_.load(&module, launch.ptx.c_str()), "loading the PTX");
    check(driver_.function(&function, module, "k"), "the kernel");
    DevicePointer in = 0, out = 0;
    std::vector<std::uint32_t> result(launch.out_words);
    check(driver_.allocate(&in, launch.in.size() * 4 + 16), "memory");
    check(driver_.allocate(&out, result.size() * 4 + 16), "memory");
    check(driver_.to_device(in, launch.in.data(), launch.in.size() * 4), "a copy");
    check(driver_.to_device(out, result.data(), result.size() * 4), "a copy");
    void* arguments[] = {&in, &out};
    check(driver_.launch(function, launch.blocks, 1, 1, launch.threads, 1, 1, 0, nullptr, arguments, nullptr),
          "the launch");
    check(driver_.synchronize(), "the kernel");
    check(driver_.to_host(result.data(), out, result.size() * 4), "a copy");
    driver_.free(in);
    driver_.free(out);
    driver_.unload(module);
    return result;
  }

 private:
  void check(int status, const char* what) const {
    if (status == 0) return;
    const char* text = nullptr;
    driver_.error_text(status, &text);
    throw std::runtime_error(std::string(what) + ": " + (text == nullptr ? "CUDA error" : text));
  }

  Driver driver_;
  Handle context_ = nullptr;
  std::string name_;
  int capability_ = 0;
};

}  // namespace

std::unique_ptr<Executor> cuda_executor() {
  Driver driver{};
  int count = 0;
  if (!load_driver(driver) || driver.init(0) != 0 || driver.count(&count) != 0 || count == 0) return nullptr;
  return std::make_unique<CudaExecutor>(driver);
}

}  // namespace fusec::gpu_test
