// Runs a launch through the CUDA driver, which is loaded at run time: the program builds and starts where there is
// none.
#include "gpu/launch.h"
#include "ir/error.h"
#include "runtime/cuda_driver.h"

namespace fusec::gpu_test {
namespace {

constexpr int kMajor = 75, kMinor = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*

class CudaExecutor : public Executor {
 public:
  explicit CudaExecutor(const CudaDriver& driver) : driver_(driver), context_(driver, 0), scope_(context_) {
    int device = 0, major = 0, minor = 0;
    char text[128] = {};
    driver.check(driver.device_get(&device, 0), "device");
    driver.check(driver.attribute(&major, kMajor, device), "capability");
    driver.check(driver.attribute(&minor, kMinor, device), "capability");
    driver.check(driver.device_name(text, sizeof(text), device), "name");
    capability_ = 10 * major + minor;
    name_ = text;
  }
  std::string name() const override { return name_; }
  int capability() const override { return capability_; }

  std::vector<std::uint32_t> run(const TestLaunch& launch) override {
    std::vector<std::uint32_t> result(launch.out_words);
    const DeviceBuffer in(driver_, launch.in.size() * 4), out(driver_, result.size() * 4);
    driver_.check(driver_.to_device(in.address(), launch.in.data(), launch.in.size() * 4), "a copy");
    driver_.check(driver_.to_device(out.address(), result.data(), result.size() * 4), "a copy");
    CudaHandle module = nullptr, function = nullptr;
    driver_.check(driver_.load(&module, launch.ptx.c_str()), "loading the PTX");
    driver_.check(driver_.function(&function, module, "k"), "the kernel");
    DevicePointer addresses[] = {in.address(), out.address()};
    void* arguments[] = {&addresses[0], &addresses[1]};
    driver_.check(driver_.launch(function, launch.blocks, 1, 1, launch.threads, 1, 1, 0, nullptr, arguments, nullptr),
                  "the launch");
    driver_.check(driver_.synchronize(), "the kernel");
    driver_.check(driver_.to_host(result.data(), out.address(), result.size() * 4), "a copy");
    driver_.unload(module);
    return result;
  }

 private:
  const CudaDriver& driver_;
  CudaContext context_;
  CurrentContext scope_;
  std::string name_;
  int capability_ = 0;
};

}  // namespace

std::unique_ptr<Executor> cuda_executor() {
  const CudaDriver* driver = nullptr;
  int count = 0;
  try {
    driver = &CudaDriver::require("compare_gpu --self-check needs none");
  } catch (const Error&) {
    return nullptr;
  }
  if (driver->device_count(&count) != 0 || count == 0) return nullptr;
  return std::make_unique<CudaExecutor>(*driver);
}

}  // namespace fusec::gpu_test
